-- Acknowledges those of a batch of entries that the consumer still owns.
-- KEYS[1]  stream
-- KEYS[2]  failures: HASH by entry
-- ARGV[1]  group
-- ARGV[2]  consumer
-- ARGV[3]  what stands before an entry's id in failures
-- ARGV[4…] ids, lowest first, 500 at most
-- Returns  the ids that it does not own, which stay as they are
local stream, failures, group, consumer = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
-- One range costs a third of looking id by id, unless the consumer holds much else in between.
local limit = 3 * (#ARGV - 3) + 1
local held = redis.pcall('XPENDING', stream, group, ARGV[4], ARGV[#ARGV], limit, consumer)
if held.err then return held end
local owned = {}
for _, entry in ipairs(held) do owned[entry[1]] = true end
local mine, fields, lost = {}, {}, {}
for i = 4, #ARGV do
  local id = ARGV[i]
  if not owned[id] and #held == limit then
    local one = redis.pcall('XPENDING', stream, group, id, id, 1, consumer)
    if one.err then return one end
    owned[id] = one[1] ~= nil
  end
  if owned[id] then
    mine[#mine + 1] = id
    fields[#fields + 1] = ARGV[3] .. id
  else
    lost[#lost + 1] = id
  end
end
if #mine == 0 then return lost end
local forgotten = redis.pcall('HDEL', failures, unpack(fields))
if type(forgotten) == 'table' then return forgotten end
local acked = redis.pcall('XACK', stream, group, unpack(mine))
if type(acked) == 'table' then return acked end
return lost
