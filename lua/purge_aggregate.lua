-- Removes an aggregate's commits, request ids, note and index entry, where it is at the version given.
-- KEYS[1]  stream: ZSET of the aggregate's commits by version
-- KEYS[2]  requests: SET of the request ids of these commits
-- KEYS[3]  ids: ZSET of the bucket's aggregate ids
-- KEYS[4]  outbox: ZSET of identities by first unpublished version
-- KEYS[5]  purged: HASH of tombstones by index member
-- ARGV[1]  version
-- ARGV[2]  identity
-- ARGV[3]  index member
-- ARGV[4]  '1' to leave a tombstone: the index entry stays, so that no writer can take the id again
-- Returns ok, none (nothing is stored), or version (it is at another one); or the error of a command.
local count = redis.pcall('ZCARD', KEYS[1])
if type(count) == 'table' then return count end
if count == 0 then return 'none' end
if redis.pcall('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2] ~= ARGV[1] then return 'version' end
-- What can fail comes first; a tombstone without a purge is taken back.
local tombstone = ARGV[4] == '1'
local failure = tombstone and redis.pcall('HSET', KEYS[5], ARGV[3], ARGV[1])
if type(failure) == 'table' then return failure end
failure = redis.pcall('UNLINK', KEYS[1], KEYS[2])
if type(failure) == 'table' then
  if tombstone then redis.pcall('HDEL', KEYS[5], ARGV[3]) end
  return failure
end
failure = redis.pcall('ZREM', KEYS[4], ARGV[2])
if type(failure) == 'table' then return failure end
if not tombstone then
  failure = redis.pcall('ZREM', KEYS[3], ARGV[3])
  if type(failure) == 'table' then return failure end
end
return 'ok'
