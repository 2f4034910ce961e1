local token = ARGV[2]
local found = call('HMGET', session, 'token', 'inbox', 'fence', 'head')
if not found[3] then return {'gone', call('HGET', KEYS[1], 'fence')} end
if found[1] == token then
    if found[4] then
        call('HDEL', session, 'token', 'until')
    else
        call('UNLINK', session)
    end
end
return {'found', call('HGET', KEYS[1], 'fence'), found[1], found[2] or '0'}
