-- Gives a held key another value and another end.
-- KEYS[1]  the reservation: HASH of value, ttlAt (when it ends, in ms), by (who wrote these two)
-- ARGV[1]  value
-- ARGV[2]  how many ms it lasts from now on; '' = for ever
-- ARGV[3]  the call's token: the same call, sent again, is answered as the first time
-- ARGV[4]  the value that must be held; absent = any
-- Returns 'done', 'free', 'other' where another value is held, or 'corrupt' where the hash is no
-- reservation; only 'done' wrote anything.
local stored = redis.pcall('HMGET', KEYS[1], 'value', 'ttlAt', 'by')
if stored.err then return stored end
local value, ttlAt, by = stored[1], stored[2], stored[3]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

if not value and not ttlAt then return 'free' end
if not value or not ttlAt or not string.match(ttlAt, '^[+-]?%d+$') then return 'corrupt' end
if tonumber(ttlAt) <= now then return 'free' end
if value == ARGV[1] and by == ARGV[3] .. ' ' .. ttlAt then return 'done' end
if ARGV[4] and value ~= ARGV[4] then return 'other' end

local ends = '148204944000000'
if ARGV[2] ~= '' then ends = string.format('%.0f', now + tonumber(ARGV[2])) end
local written = redis.pcall('HSET', KEYS[1], 'value', ARGV[1], 'ttlAt', ends, 'by', ARGV[3] .. ' ' .. ends)
if type(written) == 'table' then return written end
return 'done'
