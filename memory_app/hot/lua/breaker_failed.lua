-- Count a failure of a provider.
-- KEYS[1] breaker (hash: failures, open_until, probe_until; instants in ms of the server's clock)
-- ARGV[1] failures that open it   ARGV[2] rest in ms   ARGV[3] 1 if the probe failed   ARGV[4] life in ms
-- A call that began before the opening and fails after it does not lengthen the rest.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local is_open = redis.call('HEXISTS', KEYS[1], 'open_until') == 1
if is_open and ARGV[3] ~= '1' then
  return 0
end
local failures = redis.call('HINCRBY', KEYS[1], 'failures', 1)
if is_open or failures >= tonumber(ARGV[1]) then
  redis.call('HSET', KEYS[1], 'open_until', now + tonumber(ARGV[2]))
  redis.call('HDEL', KEYS[1], 'probe_until')
end
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return 1
