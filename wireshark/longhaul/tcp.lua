-- TCP options of ours, of the experimental kind 254 with an identifier each (RFC 6994): what two proxies say on a SYN, and
-- Loss-Tolerant TCP's. The layouts are in crates/base/src/wire/tcp.rs and tcp/coding.rs.
--
-- A post-dissector: it adds a tree to every TCP segment that has one of these options.

local longhaul = rawget(_G, "longhaul")
if not longhaul or longhaul.tcp then return end
longhaul.tcp = true

local EXPERIMENT, PROXY, CODING = 254, 0x4c48, 0x4c54

local options = Proto("longhaul.tcp", "Longhaul TCP options")
local F, list = longhaul.fields("longhaul.tcp", {
    { "proxy_mss", "uint16", "Proxy: longest segment" },
    { "coding.offered", "bool", "Erasure code offered" },
    { "coding.block", "uint8", "Block" },
    { "coding.number", "uint8", "Number in the block" },
    { "coding.sources", "uint8", "Segments with data" },
    { "coding.repairs", "uint8", "Repairs in any case", base.DEC, nil, 0x7f },
    { "coding.again", "bool", "Sent again", 8, 0x80 },
    { "coding.repair", "bool", "A repair" },
    { "coding.start", "uint32", "Sequence number of the block's first byte" },
    { "coding.tail", "uint16", "Data in the block's last segment" },
    { "coding.check", "uint32", "Check of the block", base.HEX },
    { "report.block", "uint8", "Block that ended" },
    { "report.arrived", "uint8", "Arrived of it" },
    { "report.incomplete", "uint8", "Oldest incomplete block" },
    { "report.missing", "uint8", "Missing of it" },
})
options.fields = list

local function place(range, tree)
    for at, key in ipairs({ "block", "number", "sources", "repairs" }) do
        tree:add(F["coding." .. key], range(at + 3, 1))
    end
end

-- By length of the option, as coding.rs tells them apart.
local CODINGS = {
    [4] = function(range, tree) tree:add(F["coding.offered"], range(2, 2), true) end,
    [8] = function(range, tree)
        place(range, tree)
        tree:add(F["coding.again"], range(7, 1))
    end,
    [18] = function(range, tree)
        tree:add(F["coding.repair"], range(2, 2), true)
        place(range, tree)
        tree:add(F["coding.start"], range(8, 4))
        tree:add(F["coding.tail"], range(12, 2))
        tree:add(F["coding.check"], range(14, 4))
    end,
    [10] = function(range, tree)
        for _, at in ipairs({ 4, 6 }) do
            tree:add(F["report.block"], range(at, 1))
            tree:add(F["report.arrived"], range(at + 1, 1))
        end
        tree:add(F["report.incomplete"], range(8, 1))
        tree:add(F["report.missing"], range(9, 1))
    end,
}

local field_of_options = Field.new("tcp.options")

--- Walks through one list of options.
local function walk(range, root)
    local at, tree = 0, nil
    while at + 1 < range:len() do
        local kind, length = range(at, 1):uint(), range(at + 1, 1):uint()
        if kind == 0 then return end
        if kind == 1 then
            length = 1
        elseif length < 2 or at + length > range:len() then
            return
        elseif kind == EXPERIMENT and length >= 4 then
            local option, identifier = range(at, length), range(at + 2, 2):uint()
            local read = identifier == CODING and CODINGS[length] or nil
            if identifier == PROXY and length == 6 then
                read = function(one, to) to:add(F.proxy_mss, one(4, 2)) end
            end
            if read then
                tree = tree or root:add(options, range)
                read(option, tree)
            end
        end
        at = at + length
    end
end

function options.dissector(_, _, root)
    for _, info in ipairs({ field_of_options() }) do
        walk(info.range, root)
    end
end

register_postdissector(options)
