-- Counts a failure of an entry that the consumer owns.
-- KEYS[1]  stream
-- KEYS[2]  failures: HASH by entry of "<count> <first ms> <last ms> <token> <error>"
-- ARGV[1]  group
-- ARGV[2]  consumer
-- ARGV[3]  id
-- ARGV[4]  the entry's field in failures
-- ARGV[5]  token of this failure: sent again, it is not counted again
-- ARGV[6]  error
-- Returns  {count, first ms}, or 'not owner'
local owned = redis.pcall('XPENDING', KEYS[1], ARGV[1], ARGV[3], ARGV[3], 1, ARGV[2])
if owned.err then return owned end
if not owned[1] then return 'not owner' end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local known = redis.pcall('HGET', KEYS[2], ARGV[4])
if type(known) == 'table' then return known end
local count, first, token = string.match(known or '', '^(%d+) (%d+) %d+ (%S+) ')
count, first = tonumber(count or 0), tonumber(first or now)
if token == ARGV[5] then return {count, first} end
local value = count + 1 .. ' ' .. first .. ' ' .. now .. ' ' .. ARGV[5] .. ' ' .. ARGV[6]
local written = redis.pcall('HSET', KEYS[2], ARGV[4], value)
if type(written) == 'table' then return written end
return {count + 1, first}
