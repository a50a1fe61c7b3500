-- Moves a dead letter to the retry stream of its group.
-- KEYS[1]  letters: STREAM of the topic's dead letters
-- KEYS[2]  retry: STREAM of what is replayed to the group
-- KEYS[3]  topic: STREAM
-- ARGV[1]  the letter's id
-- ARGV[2]  its group
-- ARGV[3…] its message's own fields, as they stand in a letter; none = those of the letter
-- Returns  replayed and the id in the retry stream; missing where there is no such letter; group where the topic has
--          no such group; or the error of a command. Whatever it answers but replayed, the letter stays.
local call = redis.pcall
local letter = call('XRANGE', KEYS[1], ARGV[1], ARGV[1])
if letter.err then return letter end
if not letter[1] then return {'missing'} end
local reads = call('XPENDING', KEYS[3], ARGV[2])
if reads.err then return string.find(reads.err, '^%-?NOGROUP') and {'group'} or reads end

-- What is the message's own, whom it is for, and its history.
local fields, replays, origin = {}, 0, ''
local all = letter[1][2]
for i = 1, #all, 2 do
  local name, value = all[i], all[i + 1]
  local own = name == 'packed' or string.sub(name, 1, 2) == 'f:'
  if own and not ARGV[3] or name == 'context' or name == 'processor' or name == 'function' then
    table.insert(fields, name)
    table.insert(fields, value)
  elseif name == 'replays' then
    replays = tonumber(value) or 0
  elseif name == 'origin' then
    origin = value
  end
end

for i = 3, #ARGV do table.insert(fields, ARGV[i]) end
local made = call('XGROUP', 'CREATE', KEYS[2], ARGV[2], '0', 'MKSTREAM')
if made.err and not string.find(made.err, '^%-?BUSYGROUP') then return made end
local id = call('XADD', KEYS[2], '*', 'replays', replays + 1, 'origin', origin, unpack(fields))
if type(id) == 'table' then return id end
call('XDEL', KEYS[1], ARGV[1])
return {'replayed', id}
