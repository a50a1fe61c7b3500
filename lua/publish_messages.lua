-- Adds messages to a topic, in order, and stops at the first that cannot be added.
-- KEYS[1]  topic: STREAM
-- ARGV[1]  field
-- ARGV[2…] messages
-- Returns how many were added, or the error of the first where that is none.
local added = 0
for i = 2, #ARGV do
  local id = redis.pcall('XADD', KEYS[1], '*', ARGV[1], ARGV[i])
  if type(id) == 'table' then
    if added == 0 then return id end
    return added
  end
  added = added + 1
end
return added
