-- Drops a lease of a consumer that Kotlin peers look at.
-- KEYS[1]  the consumer's lease: STRING of its holder's token
-- ARGV[1]  token
-- Returns  'dropped' or 'kept': nothing or another holder's token stands there
local token = redis.pcall('GET', KEYS[1])
if type(token) == 'table' then return token end
if token ~= ARGV[1] then return 'kept' end
local deleted = redis.pcall('DEL', KEYS[1])
if type(deleted) == 'table' then return deleted end
return 'dropped'
