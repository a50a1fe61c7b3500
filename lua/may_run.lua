-- Finds the commands that the connected user may not run, or not on these keys. Nothing is run, and no key is touched.
-- KEYS[1]  topics: SET of names, which a service adds to; in its slot the script runs
-- ARGV     command lines, the words of each parted by one space
-- Returns  'unknown' where the server is older than 7.0 and cannot say, else the lines that are refused
if not redis.acl_check_cmd then return 'unknown' end
local refused, lines = {}, {'SADD ' .. KEYS[1] .. ' x'}
for _, line in ipairs(ARGV) do lines[#lines + 1] = line end
for _, line in ipairs(lines) do
  local words = {}
  for word in string.gmatch(line, '%S+') do words[#words + 1] = word end
  local known, allowed = pcall(redis.acl_check_cmd, unpack(words))
  if known and not allowed then refused[#refused + 1] = line end
end
return refused
