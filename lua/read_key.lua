-- Reads a reservation, and says whether it holds by the server's clock.
-- KEYS[1]  the reservation: HASH of value, ttlAt (when it ends, in ms)
-- Returns {'held' or 'ended', value, ttlAt}, {'free'}, or {'corrupt'} where the hash is no reservation.
local stored = redis.pcall('HMGET', KEYS[1], 'value', 'ttlAt')
if stored.err then return stored end
local value, ttlAt = stored[1], stored[2]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

if not value and not ttlAt then return {'free'} end
if not value or not ttlAt or not string.match(ttlAt, '^[+-]?%d+$') then return {'corrupt'} end
if tonumber(ttlAt) <= now then return {'ended', value, ttlAt} end
return {'held', value, ttlAt}
