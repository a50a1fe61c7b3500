-- Moves an aggregate's note on after its commits were published, in place, so that a full memory cannot lose it.
-- KEYS[1]  outbox: ZSET of identities by first unpublished version
-- KEYS[2]  stream: ZSET of the aggregate's commits by version
-- ARGV[1]  identity
-- ARGV[2]  the version that the note must stand at
-- ARGV[3]  the last version that was published
-- Returns where the note stands then, 0 = nowhere. A note that stands elsewhere is left as it is.
local at = redis.pcall('ZSCORE', KEYS[1], ARGV[1])
if not at then return 0 end
if type(at) == 'table' then return at end
if tonumber(at) ~= tonumber(ARGV[2]) then return tonumber(at) end
local newer = redis.pcall('ZCOUNT', KEYS[2], '(' .. ARGV[3], '+inf')
if type(newer) == 'table' then return newer end
if newer == 0 then
  local removed = redis.pcall('ZREM', KEYS[1], ARGV[1])
  if type(removed) == 'table' then return removed end
  return 0
end
local next = tonumber(ARGV[3]) + 1
local moved = redis.pcall('ZADD', KEYS[1], 'XX', next, ARGV[1])
if type(moved) == 'table' then return moved end
return next
