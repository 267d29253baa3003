-- Take tokens from several buckets: from each of them, or from none.
-- KEYS[i] limit (hash: tokens, at; at in seconds of the server's clock)
-- ARGV[1] longest life in ms; then for each bucket: tokens gained per second, size of the bucket, tokens wanted
-- Returns {0, 0} when taken, else {i, wait in ms}: the bucket that has to be waited for longest.
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
local buckets, refused, wait = {}, 0, 0
for i, key in ipairs(KEYS) do
  local rate, size, wanted = tonumber(ARGV[3 * i - 1]), tonumber(ARGV[3 * i]), tonumber(ARGV[3 * i + 1])
  local tokens = tonumber(redis.call('HGET', key, 'tokens') or '') or size
  local at = tonumber(redis.call('HGET', key, 'at') or '') or now
  -- A clock that went back gains nothing and takes nothing.
  tokens = math.min(size, tokens + math.max(0, now - at) * rate)
  local missing = math.ceil((wanted - tokens) / rate * 1000)
  if missing > wait then
    refused, wait = i, missing
  end
  buckets[i] = {key, rate, size, wanted, tokens}
end
for _, bucket in ipairs(buckets) do
  local key, rate, size, wanted, tokens = unpack(bucket)
  if refused == 0 then
    tokens = tokens - wanted
  end
  redis.call('HSET', key, 'tokens', string.format('%.6f', tokens), 'at', string.format('%.6f', now))
  -- A full bucket and a missing one are the same.
  local full = math.ceil((size - tokens) / rate * 1000) + 1000
  redis.call('PEXPIRE', key, math.min(full, tonumber(ARGV[1])))
end
return {refused, wait}
