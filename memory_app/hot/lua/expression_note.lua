-- Join an interaction with what is known of a scope; the later one wins.
-- KEYS[1] expression (hash: last_interaction_at, tone, session_id, session_started_at; instants in ms)
-- ARGV[1] session id   ARGV[2] instant   ARGV[3] tone or ''   ARGV[4] start of the session or ''   ARGV[5] life in ms
local last = tonumber(redis.call('HGET', KEYS[1], 'last_interaction_at') or '')
if not last or tonumber(ARGV[2]) >= last then
  if redis.call('HGET', KEYS[1], 'session_id') ~= ARGV[1] then
    redis.call('HDEL', KEYS[1], 'session_started_at')
  end
  redis.call('HSET', KEYS[1], 'last_interaction_at', ARGV[2], 'session_id', ARGV[1])
  if ARGV[3] ~= '' then
    redis.call('HSET', KEYS[1], 'tone', ARGV[3])
  end
end
if ARGV[4] ~= '' and redis.call('HGET', KEYS[1], 'session_id') == ARGV[1] then
  redis.call('HSETNX', KEYS[1], 'session_started_at', ARGV[4])
end
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return 1
