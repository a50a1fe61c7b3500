-- Acknowledges those of a batch of entries that the consumer still owns.
-- KEYS[1]  stream
-- KEYS[2]  failures: HASH by entry
-- ARGV[1]  group
-- ARGV[2]  consumer
-- ARGV[3]  what stands before an entry's id in failures
-- ARGV[4]  'delete' where what no group needs any more is deleted as well, or ''
-- ARGV[5…] ids, lowest first, 500 at most
-- Returns  the ids that another consumer owns, which stay as they are; those that nobody owns were acknowledged before
local stream, failures, group, consumer = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
-- One range costs a third of looking id by id, unless the consumer holds much else in between.
local limit = 3 * (#ARGV - 4) + 1
local held = redis.pcall('XPENDING', stream, group, ARGV[5], ARGV[#ARGV], limit, consumer)
if held.err then return held end
local owned = {}
for _, entry in ipairs(held) do owned[entry[1]] = true end
local mine, fields, before, lost = {}, {}, {}, {}
for i = 5, #ARGV do
  local id = ARGV[i]
  if not owned[id] then
    local one = redis.pcall('XPENDING', stream, group, id, id, 1)
    if one.err then return one end
    if not one[1] then
      before[#before + 1] = id
    elseif one[1][2] ~= consumer then
      lost[#lost + 1] = id
    else
      owned[id] = true
    end
  end
  if owned[id] then
    mine[#mine + 1] = id
    fields[#fields + 1] = ARGV[3] .. id
  end
end

-- Deletes an entry unless a group has it pending, or has not read it yet. Parts of ids are compared as texts of
-- digits, since they are wider than Lua's numbers.
local groups
local function delete(id)
  if not groups then
    groups = redis.pcall('XINFO', 'GROUPS', stream)
    if groups.err then return groups end
    for i, fields in ipairs(groups) do
      local known = {}
      for j = 1, #fields, 2 do known[fields[j]] = fields[j + 1] end
      local ms, n = string.match(known['last-delivered-id'], '^(%d+)-(%d+)$')
      groups[i] = {name = known.name, ms = ms, n = n}
    end
  end
  local ms, n = string.match(id, '^(%d+)-(%d+)$')
  for _, g in ipairs(groups) do
    local unread = #g.ms < #ms or #g.ms == #ms and g.ms < ms or g.ms == ms and (#g.n < #n or #g.n == #n and g.n < n)
    local pending = unread or redis.pcall('XPENDING', stream, g.name, id, id, 1)
    if pending == true or pending[1] then return 0 end
    if pending.err then return pending end
  end
  return redis.pcall('XDEL', stream, id)
end

if #mine > 0 then
  local forgotten = redis.pcall('HDEL', failures, unpack(fields))
  if type(forgotten) == 'table' then return forgotten end
  local deletes = ARGV[4] == 'delete' and redis.pcall('COMMAND', 'INFO', 'xackdel')[1]
  local acked
  if deletes and string.lower(deletes[1]) == 'xackdel' then -- Redis 8.2
    acked = redis.pcall('XACKDEL', stream, group, 'ACKED', 'IDS', #mine, unpack(mine))
    if acked.err then return acked end
  else
    acked = redis.pcall('XACK', stream, group, unpack(mine))
    if type(acked) == 'table' then return acked end
    for _, id in ipairs(mine) do before[#before + 1] = id end
  end
end
if ARGV[4] == 'delete' then
  for _, id in ipairs(before) do
    local deleted = delete(id)
    if type(deleted) == 'table' then return deleted end
  end
end
return lost
