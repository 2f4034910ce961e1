-- Makes the hash of a new store, under a random name.
local store = redis.call('HMGET', KEYS[1], 'format', 'made')
if not store[1] then
    redis.call('HSET', KEYS[1], 'format', '1', 'made', ARGV[1])
    store = {'1', ARGV[1]}
end
return {'store', store[1], store[2]}
