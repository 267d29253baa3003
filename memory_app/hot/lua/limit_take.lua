-- Take tokens from a bucket.
-- KEYS[1] limit (hash: tokens, at; at in seconds of the server's clock)
-- ARGV[1] tokens gained per second   ARGV[2] size of the bucket   ARGV[3] tokens wanted   ARGV[4] longest life in ms
-- Returns {1, 0} when taken, {0, wait in ms} when not.
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
local rate, size, wanted = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local tokens = tonumber(redis.call('HGET', KEYS[1], 'tokens') or '') or size
local at = tonumber(redis.call('HGET', KEYS[1], 'at') or '') or now
-- A clock that went back gains nothing and takes nothing.
tokens = math.min(size, tokens + math.max(0, now - at) * rate)
local taken, wait = 1, 0
if tokens >= wanted then
  tokens = tokens - wanted
else
  taken, wait = 0, math.ceil((wanted - tokens) / rate * 1000)
end
redis.call('HSET', KEYS[1], 'tokens', string.format('%.6f', tokens), 'at', string.format('%.6f', now))
-- A full bucket and a missing one are the same.
local full = math.ceil((size - tokens) / rate * 1000) + 1000
redis.call('PEXPIRE', KEYS[1], math.min(full, tonumber(ARGV[4])))
return {taken, wait}
