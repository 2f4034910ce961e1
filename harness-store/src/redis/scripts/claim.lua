local token, ttl = ARGV[2], tonumber(ARGV[3])
local after = damage()
if after then return {'damaged', whole(after)} end
local found = call('HMGET', session, 'token', 'until', 'head', 'inbox', 'summary')
local time = now()
if found[1] and tonumber(found[2]) > time then
    return {'busy', whole(tonumber(found[2]) - time)}
end
local fence = call('HINCRBY', KEYS[1], 'fence', 1)
call('HSET', session, 'fence', fence, 'token', token, 'until', whole(time + ttl))
return {'claimed', fence, found[3] or '0', found[4] or '0', found[5], found[1] and '1' or '0'}
