local ttl, limit = tonumber(ARGV[2]), tonumber(ARGV[3])
local place = 4
local function take()
    place = place + 1
    return ARGV[place - 1]
end
local agents, except, claimed = {}, {}, 0
for number = 1, tonumber(take()) do agents[number] = take() end
for number = 1, tonumber(take()) do except[take()] = true end
local answer, time = {'due'}, whole(now())
for _, agent in ipairs(agents) do
    local name, passed = prefix .. 'due:' .. agent, 0
    while claimed < limit do
        local found = call('ZRANGEBYSCORE', name, '-inf', time, 'LIMIT', passed, 100)
        for _, due in ipairs(found) do
            id = due
            session = key('session')
            if claimed == limit then
                break
            elseif except[id] then
                passed = passed + 1
            else
                -- A lease that is taken moves the session to its end, unless it has ended already.
                except[id] = true
                local row = take_lease(ARGV[place + claimed], ttl)
                if row[1] == 'claimed' then claimed = claimed + 1 else passed = passed + 1 end
                answer[#answer + 1] = {id, row}
            end
        end
        if #found < 100 then break end
    end
end
sweep()
return answer
