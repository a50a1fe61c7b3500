-- Adds replies for a process that waits for them, for as long as it is alive.
-- KEYS[1]  its lease: STRING, which expires
-- KEYS[2]  its replies: STREAM
-- ARGV[1]  for how many ms the stream is kept
-- ARGV[2]  how many replies it may hold; the oldest go first
-- ARGV[3]  field
-- ARGV[4…] replies
-- Returns  'added'; 'gone': nobody waits any more, and nothing was written; or the error of a command.
local alive = redis.pcall('EXISTS', KEYS[1])
if type(alive) == 'table' then return alive end
if alive == 0 then return 'gone' end
for i = 4, #ARGV do
  local id = redis.pcall('XADD', KEYS[2], 'MAXLEN', '~', ARGV[2], '*', ARGV[3], ARGV[i])
  if type(id) == 'table' then return id end
end
local kept = redis.pcall('PEXPIRE', KEYS[2], ARGV[1])
if type(kept) == 'table' then return kept end
return 'added'
