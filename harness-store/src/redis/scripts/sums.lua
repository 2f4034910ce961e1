-- A batch is a member `first:last:bytes:token:sum` of a sorted set, whose score is `first`, and a field
-- `first` of a hash, which has its entries.
local function sum_of(first, last, token, framed)
    local place = first .. ':' .. last .. ':' .. token .. ':' .. #id .. ':' .. id
    return redis.sha1hex(place .. redis.sha1hex(framed))
end
local function batch_of(member)
    return string.match(member, '^(%d+):(%d+):(%d+):(%x+):(%x+)$')
end
-- The last sound entry before the first damage, from the last snapshot on; nil if everything is sound.
local function damage()
    local found = call('HMGET', session, 'head', 'first', 'snapshot')
    if not found[1] then return nil end
    local expected = math.max(tonumber(found[2]), tonumber(found[3] or 0))
    local at = call('ZREVRANGEBYSCORE', key('batches'), whole(expected), '-inf', 'LIMIT', 0, 1)[1]
    local from = at and batch_of(at)
    if not from then return expected - 1 end
    expected = tonumber(from)
    while true do
        local members = call('ZRANGEBYSCORE', key('batches'), from, '+inf', 'LIMIT', 0, 100)
        for _, member in ipairs(members) do
            local first, last, _, token, sum = batch_of(member)
            local framed = first and call('HGET', key('log'), first)
            if not framed or tonumber(first) ~= expected or sum_of(first, last, token, framed) ~= sum then
                return expected - 1
            end
            expected = tonumber(last) + 1
            from = '(' .. first
        end
        if #members < 100 then break end
    end
    if expected ~= tonumber(found[1]) + 1 then return expected - 1 end
    return nil
end
