-- Sorted sets of the keys of sessions, by the bytes of these: all sessions, those of an agent, those in
-- a phase, and those of an agent in a phase. `base` is `all`, or `open` for those with open interrupts.
local function index(command, base, agent, phase, listed)
    for _, name in ipairs({'', ':agent:' .. agent, ':phase:' .. phase, ':both:' .. phase .. ':' .. agent}) do
        if command == 'ZADD' then
            call('ZADD', prefix .. base .. name, 0, listed)
        else
            call('ZREM', prefix .. base .. name, listed)
        end
    end
end
-- Removes everything of the session.
local function erase()
    local found = call('HMGET', session, 'listed', 'agent', 'phase', 'open')
    if found[1] then
        index('ZREM', 'all', found[2], found[3], found[1])
        if found[4] == '1' then index('ZREM', 'open', found[2], found[3], found[1]) end
    end
    for _, kind in ipairs({'session', 'log', 'batches', 'snapshots', 'bare', 'inbox', 'keys', 'open', 'ids'}) do
        call('UNLINK', key(kind))
    end
    if found[2] then call('ZREM', prefix .. 'due:' .. found[2], id) end
    call('ZREM', prefix .. 'ended', id)
end
