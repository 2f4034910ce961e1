-- Lists the sessions of an index after a key, or their open interrupts from a session on: of this one
-- only those after an interrupt, if there is one.
local name, limit, interrupts = prefix .. ARGV[2], tonumber(ARGV[3]), ARGV[4] == '1'
local from, is_after, interrupt = ARGV[5], ARGV[6] == '1', ARGV[7]
local part = string.sub(from, 2)
local rows = {'rows'}
local function add(listed, about)
    local row = call('HMGET', session, 'summary', 'head', 'created', 'updated')
    rows[#rows + 1] = {listed, id, row[1], row[2], row[3], row[4], about, about and call('HGET', key('open'), about)}
end
while true do
    local found = call('ZRANGEBYLEX', name, from, '+', 'LIMIT', 0, 100)
    for _, listed in ipairs(found) do
        id = string.gsub(listed, '%z\255', '\0')
        session = key('session')
        if not interrupts then
            add(listed, false)
        else
            local least = '-'
            if listed == part and is_after then least = '(' .. interrupt end
            for _, about in ipairs(call('ZRANGEBYLEX', key('ids'), least, '+', 'LIMIT', 0, limit)) do
                add(listed, about)
                if #rows > limit then return rows end
            end
        end
        if #rows > limit then return rows end
        from = '(' .. listed
    end
    if #found < 100 then return rows end
end
