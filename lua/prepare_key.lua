-- Reserves a key that is free.
-- KEYS[1]  the reservation: HASH of value, ttlAt (when it ends, in ms), by (who wrote these two)
-- ARGV[1]  value
-- ARGV[2]  how many ms it lasts; '' = for ever
-- ARGV[3]  the call's token: the same call, sent again, is answered as the first time
-- Returns 'done', 'held', or 'corrupt' where the hash is no reservation; only 'done' wrote anything.
local stored = redis.pcall('HMGET', KEYS[1], 'value', 'ttlAt', 'by')
if stored.err then return stored end
local value, ttlAt, by = stored[1], stored[2], stored[3]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

if value or ttlAt then
  if not value or not ttlAt or not string.match(ttlAt, '^[+-]?%d+$') then return 'corrupt' end
  if tonumber(ttlAt) > now then
    -- A Kotlin node changes value and ttlAt and leaves by, so by counts only with both.
    if value == ARGV[1] and by == ARGV[3] .. ' ' .. ttlAt then return 'done' end
    return 'held'
  end
end

local ends = '148204944000000'
if ARGV[2] ~= '' then ends = string.format('%.0f', now + tonumber(ARGV[2])) end
local written = redis.pcall('HSET', KEYS[1], 'value', ARGV[1], 'ttlAt', ends, 'by', ARGV[3] .. ' ' .. ends)
if type(written) == 'table' then return written end
return 'done'
