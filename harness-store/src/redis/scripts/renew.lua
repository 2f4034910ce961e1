local token, ttl = ARGV[2], tonumber(ARGV[3])
local found = call('HMGET', session, 'token', 'inbox', 'fence', 'head')
if not found[3] then return {'gone', call('HGET', KEYS[1], 'fence')} end
if found[1] == token then
    call('HSET', session, 'until', whole(now() + ttl))
    place_due()
end
return {'found', call('HGET', KEYS[1], 'fence'), found[1], found[2] or '0'}
