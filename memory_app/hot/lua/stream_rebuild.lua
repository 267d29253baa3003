-- Put turns in place of a stream, unless a turn was accepted since the token was read.
-- KEYS[1] stream (list)   KEYS[2] its epoch (string)
-- ARGV[1] token   ARGV[2] life in ms   ARGV[3...] entries, oldest first
-- Returns 1 when put, 0 when refused.
if redis.call('GET', KEYS[2]) ~= ARGV[1] then
  return 0
end
redis.call('DEL', KEYS[1])
for i = 3, #ARGV do
  redis.call('LPUSH', KEYS[1], ARGV[i])
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
