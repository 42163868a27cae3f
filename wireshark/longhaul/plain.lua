-- No protocol: a packet a frame, or a fragment of one. The layout is in crates/link/src/plain.rs and plain/fragment.rs.

local longhaul = rawget(_G, "longhaul")
if not longhaul or longhaul.plain then return end
longhaul.plain = true
local notes, packet = longhaul.notes, longhaul.packet

local plain = Proto("longhaul.plain", "Longhaul plain link")
local F, list = longhaul.fields("longhaul.plain", {
    { "first", "bool", "Starts a packet", 8, 0x02 },
    { "last", "bool", "Ends a packet", 8, 0x01 },
    { "number", "uint24", "Fragment" },
    { "payload", "bytes", "Payload" },
})
plain.fields = list
local FRAGMENT_HEADER, SPACE = 4, 2 ^ 24

longhaul.frame.dissectors.plain = function(tvb, pinfo, root, about)
    local tree = root:add(plain, tvb())
    local kind = bit.rshift(tvb(0, 1):uint(), 4)
    if kind == 0 or kind == 4 or kind == 6 then
        notes.say(pinfo, ", whole packet")
        packet.dissect(tvb, pinfo, root)
    elseif kind ~= 1 or bit.band(tvb(0, 1):uint(), 0x0c) ~= 0 then
        notes.refuse(tree, pinfo, "neither a packet nor a fragment")
    elseif tvb:len() < FRAGMENT_HEADER then
        notes.refuse(tree, pinfo, "truncated")
    else
        local first, last = bit.band(tvb(0, 1):uint(), 2) ~= 0, bit.band(tvb(0, 1):uint(), 1) ~= 0
        tree:add(F.first, tvb(0, 1))
        tree:add(F.last, tvb(0, 1))
        tree:add(F.number, tvb(1, 3))
        notes.say(pinfo, string.format(", fragment %d, %s", tvb(1, 3):uint(), packet.part(first, last)))
        if tvb:len() > FRAGMENT_HEADER then
            local number = tvb(1, 3):uint()
            packet.payload(tvb(FRAGMENT_HEADER), pinfo, tree, root, F.payload,
                { about = about, stream = "plain", number = number, space = SPACE, first = first, last = last })
        end
    end
end
