-- Leaves a stream as it is by writes that replicas get: a WAIT behind it on the same
-- connection then covers all that was written before, by whomever.
-- KEYS[1]  stream: ZSET of commits by version
-- Returns  ok; none: there is no stream, and nothing was written; or the error of a command.
local left = redis.pcall('PTTL', KEYS[1])
if type(left) == 'table' then return left end
if left == -2 then return 'none' end
-- Neither asks for memory, so neither fails between the two.
local set = redis.pcall('PEXPIRE', KEYS[1], left > 0 and left or 1000000000000)
if type(set) == 'table' then return set end
if left == -1 then
  local taken = redis.pcall('PERSIST', KEYS[1])
  if type(taken) == 'table' then return taken end
end
return 'ok'
