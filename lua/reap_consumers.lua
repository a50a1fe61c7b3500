-- Removes the consumers of a group that are gone and hold nothing, and a group of one that is gone itself.
-- KEYS[1]  topic: STREAM
-- KEYS[2]  retry: STREAM of what was replayed to the group
-- KEYS[3]  leases: ZSET of the group's consumers by deadline in ms; 0 = it left
-- KEYS[4]  failed: HASH of the group's failures
-- ARGV[1]  group
-- ARGV[2]  for how many ms a deadline must have passed
-- ARGV[3]  for how many ms a consumer without a lease must have been idle
-- ARGV[4]  ephemeral, where the group goes with its last consumer, or ''
-- ARGV[5]  dry, to change nothing, or ''
-- Returns  done or more (the call has a limit: call again), destroyed where the group went or else kept, and the
--          names of the consumers that went; or the error of a command
local group, dry, call = ARGV[1], ARGV[5] == 'dry', redis.pcall
local limit, nobody = 1000, '' -- no consumer has an empty name
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local leases = call('ZRANGE', KEYS[3], 0, -1, 'WITHSCORES')
if leases.err then return leases end
local deadlines, living = {}, false
for i = 1, #leases, 2 do
  local deadline = tonumber(leases[i + 1])
  deadlines[leases[i]] = deadline
  living = living or deadline ~= 0 and deadline + ARGV[2] > now
end

-- By name: what it holds, for how long it was idle, in which streams it is.
local consumers, names = {}, {}
for s = 1, 2 do
  local listed = call('XINFO', 'CONSUMERS', KEYS[s], group)
  if listed.err then
    if not string.find(listed.err, 'no such key') and not string.find(listed.err, 'NOGROUP') then return listed end
    listed = {}
  end
  for _, fields in ipairs(listed) do
    local seen = {}
    for j = 1, #fields, 2 do seen[fields[j]] = fields[j + 1] end
    local c = consumers[seen.name]
    if not c then
      c = {pending = 0, idle = seen.idle}
      consumers[seen.name] = c
      table.insert(names, seen.name)
    end
    c.pending, c.idle, c[s] = c.pending + seen.pending, math.min(c.idle, seen.idle), true
  end
end

local function gone(deadline) return deadline == 0 or deadline + ARGV[2] <= now end

if ARGV[4] == 'ephemeral' and not living then
  if #leases == 0 then
    -- Its owner may be about to write its first lease: look again when this one has passed.
    local noted = dry or call('ZADD', KEYS[3], now, nobody)
    if type(noted) == 'table' then return noted end
    return {'done', 'kept'}
  end
  if not dry then
    if call('EXISTS', KEYS[1]) == 1 then
      local destroyed = call('XGROUP', 'DESTROY', KEYS[1], group)
      if type(destroyed) == 'table' then return destroyed end
    end
    local removed = call('UNLINK', KEYS[2], KEYS[3], KEYS[4])
    if type(removed) == 'table' then return removed end
  end
  table.insert(names, 1, 'destroyed')
  table.insert(names, 1, 'done')
  return names
end

local reply = {'done', 'kept'}
for _, name in ipairs(names) do
  local c, deadline = consumers[name], deadlines[name]
  local dead
  if deadline then dead = gone(deadline) else dead = c.idle >= tonumber(ARGV[3]) end
  if dead and c.pending == 0 then
    if not dry then
      if #reply == limit + 2 then
        reply[1] = 'more'
        break
      end
      for s = 1, 2 do
        if c[s] then
          local lost = call('XGROUP', 'DELCONSUMER', KEYS[s], group, name)
          if type(lost) == 'table' then return lost end
        end
      end
      call('ZREM', KEYS[3], name)
    end
    table.insert(reply, name)
  end
end
-- Leases of consumers that are in no stream: they have read nothing, or somebody else removed them.
for name, deadline in pairs(deadlines) do
  if not consumers[name] and gone(deadline) and not dry then call('ZREM', KEYS[3], name) end
end
return reply
