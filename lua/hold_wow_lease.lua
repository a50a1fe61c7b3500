-- Holds the lease by which Kotlin peers see a consumer alive.
-- KEYS[1]  the consumer's lease: STRING of its holder's token, which expires
-- ARGV[1]  token
-- ARGV[2]  for how many ms
-- ARGV[3]  'first' if this holder has not held it yet, so that what it finds is its predecessor's
-- Returns  'held' or 'taken': another holder's token stands there, and stays
local token = redis.pcall('GET', KEYS[1])
if type(token) == 'table' then return token end
if token and token ~= ARGV[1] and ARGV[3] ~= 'first' then return 'taken' end
local written
if token == ARGV[1] then
  written = redis.pcall('PEXPIRE', KEYS[1], ARGV[2]) -- works while memory is full, unlike SET
else
  written = redis.pcall('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
if type(written) == 'table' and written.err then return written end
return 'held'
