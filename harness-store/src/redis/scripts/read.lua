local kind, from, limit, read = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local found = call('HMGET', session, 'head', 'first', 'fence', 'token', 'until', 'inbox', 'created',
    'updated', 'summary')
if not found[1] then return {'none'} end
local head, first = tonumber(found[1]), tonumber(found[2])
local left = found[4] and tonumber(found[5]) - now() or 0

-- Each batch from the one with this entry on, as far as they fit: what is kept of it, and its entries,
-- which that of the next page lacks.
local function batches(begins)
    local listed, bytes = {}, 0
    local at = call('ZREVRANGEBYSCORE', key('batches'), whole(begins), '-inf', 'LIMIT', 0, 1)[1]
    local next = at and batch_of(at) or whole(begins)
    while true do
        local members = call('ZRANGEBYSCORE', key('batches'), next, '+inf', 'LIMIT', 0, 100)
        for _, member in ipairs(members) do
            local place, _, size = batch_of(member)
            if not place then
                listed[#listed + 1] = {member, false}
                return listed
            end
            -- How much of the first one is wanted, its reader knows.
            if #listed > 0 then bytes = bytes + size end
            if bytes > limit then
                listed[#listed + 1] = {member, false}
                return listed
            end
            listed[#listed + 1] = {member, call('HGET', key('log'), place)}
            next = '(' .. place
        end
        if #members < 100 then return listed end
    end
end

local snapshot, listed = false, {}
if kind ~= 'none' then
    local begins = math.max(from, first)
    if kind ~= 'seq' then
        local most = kind == 'below' and whole(from) or '+inf'
        snapshot = call('ZREVRANGEBYSCORE', key('snapshots'), most, '-inf', 'LIMIT', 0, 1)[1] or false
        begins = tonumber(snapshot or first)
    end
    if begins <= head then listed = batches(begins) end
end
local messages = read ~= '' and call('LRANGE', key('inbox'), read, -1) or {}
return {'page', found[1], found[2], found[3], whole(math.max(left, 0)), found[6] or '0', found[7],
    found[8], found[9], snapshot, listed, messages, call('HGETALL', key('open'))}
