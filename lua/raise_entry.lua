-- Raises the delivery count of an entry that the consumer owns, before it handles what it did not read itself.
-- KEYS[1]  stream
-- ARGV[1]  group
-- ARGV[2]  consumer
-- ARGV[3]  id
-- Returns  the new count, or 'not owner', also where the record is gone
local owned = redis.pcall('XPENDING', KEYS[1], ARGV[1], ARGV[3], ARGV[3], 1, ARGV[2])
if owned.err then return owned end
if not owned[1] then return 'not owner' end
local count = owned[1][4] + 1
local raised = redis.pcall('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, ARGV[3], 'RETRYCOUNT', count, 'JUSTID')
if raised.err then return raised end
if not raised[1] then return 'not owner' end
return count
