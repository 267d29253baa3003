-- A process says that it lives.
-- KEYS    one per kind of part (hash: instance -> "instant in ms of the server's clock, tasks in hand")
-- ARGV[1] instance   ARGV[2] tasks in hand   ARGV[3] after how many ms a silent instance is dropped   ARGV[4] life in ms
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
for _, key in ipairs(KEYS) do
  local fields = redis.call('HGETALL', key)
  for i = 1, #fields, 2 do
    local said_at = tonumber(string.match(fields[i + 1], '^%d+') or '')
    if not said_at or said_at < now - tonumber(ARGV[3]) then
      redis.call('HDEL', key, fields[i])
    end
  end
  redis.call('HSET', key, ARGV[1], string.format('%d %d', now, tonumber(ARGV[2])))
  redis.call('PEXPIRE', key, ARGV[4])
end
return 1
