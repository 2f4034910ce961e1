-- Takes the lease of the session, unless it is held or damaged.
local function take_lease(token, ttl)
    local after = damage()
    if after then return {'damaged', whole(after)} end
    local found = call('HMGET', session, 'token', 'until', 'head', 'inbox', 'summary')
    local time = now()
    if found[1] and tonumber(found[2]) > time then
        return {'busy', whole(tonumber(found[2]) - time)}
    end
    local fence = call('HINCRBY', KEYS[1], 'fence', 1)
    call('HSET', session, 'fence', fence, 'token', token, 'until', whole(time + ttl))
    place_due()
    return {'claimed', fence, found[3] or '0', found[4] or '0', found[5], found[1] and '1' or '0'}
end
-- Removes a few sessions that have ended long ago. Those that are held, or have a message that was not
-- read, are looked at again in a minute.
local function sweep()
    local time = now()
    for _, ended in ipairs(call('ZRANGEBYSCORE', prefix .. 'ended', '-inf', whole(time), 'LIMIT', 0, 4)) do
        id = ended
        session = key('session')
        local found = call('HMGET', session, 'phase', 'token', 'until', 'inbox', 'seen', 'read')
        local read = math.max(tonumber(found[5] or 0), tonumber(found[6] or 0))
        if found[1] ~= '4' then
            call('ZREM', prefix .. 'ended', id)
        elseif found[2] and tonumber(found[3]) > time or tonumber(found[4] or 0) > read then
            call('ZADD', prefix .. 'ended', whole(time + 60000000), id)
        else
            erase()
        end
    end
end
