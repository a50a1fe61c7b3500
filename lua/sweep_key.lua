-- Removes a reservation that ended long ago.
-- KEYS[1]  the reservation: HASH of ttlAt (when it ended, in ms) and more
-- ARGV[1]  for how many ms it must have ended
-- Returns 'removed' or 'kept'.
local ttlAt = redis.pcall('HGET', KEYS[1], 'ttlAt')
if type(ttlAt) == 'table' then return ttlAt end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

if not ttlAt or not string.match(ttlAt, '^[+-]?%d+$') or tonumber(ttlAt) + tonumber(ARGV[1]) > now then return 'kept' end
local deleted = redis.pcall('DEL', KEYS[1])
if type(deleted) == 'table' then return deleted end
return 'removed'
