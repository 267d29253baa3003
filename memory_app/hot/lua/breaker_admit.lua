-- May a provider be called?
-- KEYS[1] breaker (hash: failures, open_until, probe_until; instants in ms of the server's clock)
-- ARGV[1] how long a probe may take in ms   ARGV[2] life in ms   ARGV[3] longest wait for the outcome of a probe in ms
-- Returns {'closed', 0}, {'probe', 0} for the one call that tries, or {'open', wait in ms}.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local open_until = tonumber(redis.call('HGET', KEYS[1], 'open_until') or '')
if not open_until then
  return {'closed', 0}
end
local probe_until = tonumber(redis.call('HGET', KEYS[1], 'probe_until') or '') or 0
if open_until > now then
  return {'open', open_until - now}
end
if probe_until > now then
  return {'open', math.min(probe_until - now, tonumber(ARGV[3]))}
end
redis.call('HSET', KEYS[1], 'probe_until', now + tonumber(ARGV[1]))
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return {'probe', 0}
