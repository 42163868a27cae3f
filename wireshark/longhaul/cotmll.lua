-- COTMLL in the thesis's format: four bytes behind the payload.
-- The layout is in crates/link/src/cotmll/trailer.rs and skip.rs.

local longhaul = rawget(_G, "longhaul")
if not longhaul or longhaul.cotmll then return end
longhaul.cotmll = true
local notes, packet = longhaul.notes, longhaul.packet

local CLASSES = { [0] = "control", [1] = "reliable", [2] = "unreliable" }

local cotmll = Proto("longhaul.cotmll", "COTMLL")
local F, list = longhaul.fields("longhaul.cotmll", {
    { "class", "uint32", "Class", base.DEC, CLASSES, 0xe0000000 },
    { "first", "bool", "Starts a packet", 32, 0x10000000 },
    { "last", "bool", "Ends a packet", 32, 0x08000000 },
    { "ack_count", "uint32", "Frames acknowledged in a block", base.DEC, nil, 0x07f00000 },
    { "seq", "uint32", "Sequence number", base.DEC, nil, 0x000ffc00 },
    { "ack", "uint32", "Acknowledgement", base.DEC, nil, 0x000003ff },
    { "skip.type", "uint8", "Message", base.DEC, { [1] = "skip" } },
    { "skip.start", "uint16", "First frame to skip" },
    { "skip.count", "uint16", "Frames to skip" },
    { "payload", "bytes", "Payload" },
})
cotmll.fields = list
local TRAILER, SKIP, SPACE = 4, 5, 1024

local function skip(range, pinfo, tree)
    if range:len() ~= SKIP or range(0, 1):uint() ~= 1 then
        return notes.refuse(tree, pinfo, "an unknown message")
    end
    local start, count = range(1, 2):uint(), range(3, 2):uint()
    tree:add(F["skip.type"], range(0, 1))
    tree:add(F["skip.start"], range(1, 2))
    tree:add(F["skip.count"], range(3, 2))
    notes.say(pinfo, string.format(", skip %d from %d", count, start))
    if start > 1023 or count < 1 or count > 512 then
        notes.refuse(tree, pinfo, "a skip out of range")
    end
end

longhaul.frame.dissectors.cotmll = function(tvb, pinfo, root, about)
    local tree = root:add(cotmll, tvb())
    if tvb:len() < TRAILER then
        return notes.refuse(tree, pinfo, "truncated")
    end
    local trailer = tvb(tvb:len() - TRAILER, TRAILER)
    local word = trailer:uint()
    local field = function(shift, mask) return bit.band(bit.rshift(word, shift), mask) end
    local class, first, last = field(29, 7), field(28, 1) == 1, field(27, 1) == 1
    local count, seq, ack = field(20, 127), field(10, 1023), field(0, 1023)
    local said = CLASSES[class]
    for _, key in ipairs({ "class", "first", "last", "ack_count", "seq", "ack" }) do
        tree:add(F[key], trailer)
    end
    if said == nil then
        return notes.refuse(tree, pinfo, "an unknown class")
    end
    local acknowledged = count == 0 and "ack " .. ack or string.format("ack %d+%d", ack, count)
    notes.say(pinfo, class == 0 and ", " .. acknowledged
        or string.format(", %s %d, %s, %s", said, seq, packet.part(first, last), acknowledged))
    if tvb:len() == TRAILER then return end
    local payload = tvb(0, tvb:len() - TRAILER)
    if class == 0 then
        skip(payload, pinfo, tree)
    else
        local stream = string.format("cotmll %d", class)
        packet.payload(payload, pinfo, tree, root, F.payload,
            { about = about, stream = stream, number = seq, space = SPACE, first = first, last = last })
    end
end
