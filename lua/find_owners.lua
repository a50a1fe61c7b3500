-- Finds the consumers of a group that own pending entries and are not known to be alive.
-- KEYS[1]  stream
-- KEYS[2]  leases: ZSET of consumers by deadline in ms; 0 = it has left
-- KEYS[3]  failures: HASH by entry
-- ARGV[1]  group
-- ARGV[2]  the consumer that asks
-- Returns  'late' if its own deadline has passed, else {how many entries it owns, how many failures are kept, the
--          first entry that is pending or '', consumer, 'left', 'passed' or 'absent', its deadline or '', …}
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local mine = redis.pcall('ZSCORE', KEYS[2], ARGV[2])
if type(mine) == 'table' then return mine end
if not mine or tonumber(mine) <= now then return 'late' end
local pending = redis.pcall('XPENDING', KEYS[1], ARGV[1])
if pending.err then return pending end
local failures = redis.pcall('HLEN', KEYS[3])
if type(failures) == 'table' then return failures end
local found = {0, failures, pending[2] or ''}
for _, owner in ipairs(pending[4] or {}) do
  if owner[1] == ARGV[2] then
    found[1] = tonumber(owner[2])
  else
    local deadline = redis.pcall('ZSCORE', KEYS[2], owner[1])
    if not deadline or tonumber(deadline) <= now then
      found[#found + 1] = owner[1]
      found[#found + 1] = not deadline and 'absent' or tonumber(deadline) == 0 and 'left' or 'passed'
      found[#found + 1] = deadline or ''
    end
  end
end
return found
