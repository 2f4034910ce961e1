local token, read = ARGV[2], tonumber(ARGV[3])
local found = call('HMGET', session, 'token', 'inbox', 'fence', 'head', 'read')
if not found[3] then return {'gone', call('HGET', KEYS[1], 'fence')} end
if found[1] == token then
    if found[4] then
        call('HDEL', session, 'token', 'until')
        -- No more than there are.
        read = math.min(read, tonumber(found[2] or 0))
        call('HSET', session, 'read', whole(math.max(read, tonumber(found[5] or 0))))
        place_due()
    else
        call('UNLINK', session)
    end
end
return {'found', call('HGET', KEYS[1], 'fence'), found[1], found[2] or '0'}
