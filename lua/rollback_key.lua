-- Frees a held key.
-- KEYS[1]  the reservation: HASH of value, ttlAt (when it ends, in ms), by
-- KEYS[2]  STRING: the token of the last call that freed the key, kept for a minute
-- ARGV[1]  the call's token: the same call, sent again, is answered as the first time and
--          leaves whoever reserved the key since alone
-- ARGV[2]  the value that must be held; absent = any
-- Returns 'done', 'free', 'other' where another value is held, or 'corrupt' where the hash is no
-- reservation; only 'done' wrote anything.
local last = redis.pcall('GET', KEYS[2])
if type(last) == 'table' then return last end
if last == ARGV[1] then return 'done' end

local stored = redis.pcall('HMGET', KEYS[1], 'value', 'ttlAt')
if stored.err then return stored end
local value, ttlAt = stored[1], stored[2]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

if not value and not ttlAt then return 'free' end
if not value or not ttlAt or not string.match(ttlAt, '^[+-]?%d+$') then return 'corrupt' end
if tonumber(ttlAt) <= now then return 'free' end
if ARGV[2] and value ~= ARGV[2] then return 'other' end

local deleted = redis.pcall('DEL', KEYS[1])
if type(deleted) == 'table' then return deleted end
redis.pcall('SET', KEYS[2], ARGV[1], 'PX', 60000) -- refused when memory is full, which frees all the same
return 'done'
