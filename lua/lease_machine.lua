-- Leases a machine number, or any other thing, to a holder that has it already, or where nobody has.
-- KEYS[1]  lease: STRING with the holder's token, which ends with the lease
-- ARGV[1]  the holder's token
-- ARGV[2]  for how many ms
-- Returns held, or taken where another holder has it; or the error of a command.
local holder = redis.pcall('GET', KEYS[1])
if type(holder) == 'table' then return holder end
if holder and holder ~= ARGV[1] then return 'taken' end
local set = redis.pcall('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
if set.err then return set end
return 'held'
