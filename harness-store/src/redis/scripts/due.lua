-- Keeps the session among those of its agent that may be due, by the microsecond from which they are:
-- from when on the rule `due_from` says, and not while the lease is held.
local function place_due()
    local found = call('HMGET', session, 'agent', 'phase', 'seen', 'read', 'inbox', 'due', 'token', 'until')
    local agent = found[1]
    if not agent then return end
    local read = math.max(tonumber(found[3] or 0), tonumber(found[4] or 0))
    local from
    if tonumber(found[5] or 0) > read or found[2] == '1' then
        from = 0
    elseif found[6] and found[6] ~= '' then
        from = tonumber(found[6]) * 1000
    end
    if from and found[7] then from = math.max(from, tonumber(found[8])) end
    if not from then
        call('ZREM', prefix .. 'due:' .. agent, id)
        return
    end
    call('ZADD', prefix .. 'due:' .. agent, whole(from), id)
    -- Those who wait hear of it if they can; they ask again in any case.
    if from <= now() then redis.pcall('PUBLISH', prefix .. 'due', agent) end
end
