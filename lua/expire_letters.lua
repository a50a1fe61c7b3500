-- Removes the oldest dead letters of a topic, by age and by number.
-- KEYS[1]  letters: STREAM of the topic's dead letters
-- ARGV[1]  age in ms above which they go
-- ARGV[2]  how many stay
-- Returns  done or more (the call has a limit: call again), how many were too old, how many were too many; or the
--          error of a command
local more = false

-- A large part goes by whole nodes and not all at once.
local function trim(by, limit)
  local nodes = redis.pcall('XTRIM', KEYS[1], by, '~', limit, 'LIMIT', 1000)
  if type(nodes) == 'table' then return nodes end
  if nodes >= 500 then
    more = true
    return nodes
  end
  local rest = redis.pcall('XTRIM', KEYS[1], by, '=', limit)
  if type(rest) == 'table' then return rest end
  return nodes + rest
end

local time = redis.call('TIME')
local oldest = math.max(0, time[1] * 1000 + math.floor(time[2] / 1000) - ARGV[1])
local old, many = trim('MINID', string.format('%.0f-0', oldest)), 0
if type(old) == 'table' then return old end
if not more then many = trim('MAXLEN', ARGV[2]) end
if type(many) == 'table' then return many end
return {more and 'more' or 'done', old, many}
