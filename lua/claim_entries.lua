-- Claims entries of a consumer that is not alive, or finds again what the claimer owns itself; delivery counts stay.
-- KEYS[1]  stream
-- KEYS[2]  leases: ZSET of consumers by deadline in ms; 0 = it has left
-- ARGV[1]  group
-- ARGV[2]  the claimer
-- ARGV[3]  the owner
-- ARGV[4]  for how many ms an entry must be idle if the owner has no deadline here, as Kotlin consumers have none;
--          '' = such an owner counts as alive
-- ARGV[5…] ids
-- Returns  {{id, delivery count, …}, {ids whose record is gone, which are acknowledged}}, without those that the owner
--          does not own; 'late' if the claimer's own deadline has passed; 'alive' if the owner is
local stream, leases, group, claimer, owner = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local mine = redis.pcall('ZSCORE', leases, claimer)
if type(mine) == 'table' then return mine end
if not mine or tonumber(mine) <= now then return 'late' end
local idle = 0
if owner ~= claimer then
  local deadline = redis.pcall('ZSCORE', leases, owner)
  if deadline and tonumber(deadline) > now or not deadline and ARGV[4] == '' then return 'alive' end
  if not deadline then idle = tonumber(ARGV[4]) end
end
local claimed, gone = {}, {}
for i = 5, #ARGV do
  local id = ARGV[i]
  local pending = redis.pcall('XPENDING', stream, group, id, id, 1, owner)
  if pending.err then return pending end
  local entry = pending[1]
  if entry and entry[3] >= idle then
    local got = redis.pcall('XCLAIM', stream, group, claimer, 0, id, 'RETRYCOUNT', entry[4], 'JUSTID')
    if got.err then return got end
    if got[1] then
      claimed[#claimed + 1] = id
      claimed[#claimed + 1] = entry[4]
    else -- 7.0 and later say nothing of a record that is gone; 6.2 claims it
      gone[#gone + 1] = id
      redis.call('XACK', stream, group, id)
    end
  end
end
return {claimed, gone}
