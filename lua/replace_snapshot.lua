-- Puts a snapshot in the place of exactly the bytes that the caller has seen.
-- KEYS 1  string: the aggregate's snapshot, whatever it holds
-- ARGV 1  the bytes that must be stored
-- ARGV 2  the new snapshot
-- Returns Ok, also where the new one is stored already (an answer that was lost);
-- Changed: other bytes are stored, or none. Only Ok wrote anything.
local stored = redis.pcall('GET', KEYS[1])
if type(stored) == 'table' then return stored end
if stored == ARGV[2] then return 'Ok' end
if stored ~= ARGV[1] then return 'Changed' end

local reply = redis.pcall('SET', KEYS[1], ARGV[2])
if reply.err then return reply end
return 'Ok'
