-- Takes back the delivery of entries that the consumer owns and has not handled. They stay its own, and as idle as
-- they were, until peers claim them.
-- KEYS[1]  stream
-- ARGV[1]  group
-- ARGV[2]  consumer
-- ARGV[3…] ids
-- Returns  how many it owned
local given = 0
for i = 3, #ARGV do
  local id = ARGV[i]
  local owned = redis.pcall('XPENDING', KEYS[1], ARGV[1], id, id, 1, ARGV[2])
  if owned.err then return owned end
  local entry = owned[1]
  if entry then
    local claimed = redis.pcall('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, id,
      'IDLE', entry[3], 'RETRYCOUNT', math.max(entry[4] - 1, 0), 'JUSTID')
    if claimed.err then return claimed end
    given = given + 1
  end
end
return given
