-- HARQ: fragments of blocks, with a header in front, and reports. The layout is in crates/link/src/harq/header.rs and code.rs.

local longhaul = rawget(_G, "longhaul")
if not longhaul or longhaul.harq then return end
longhaul.harq = true
local notes, packet, arq = longhaul.notes, longhaul.packet, longhaul.arq

local TYPES = { [0] = "once", [1] = "fragment", [2] = "fragment with a floor", [3] = "control" }

local SPACE = 2 ^ 24

local harq, F = arq.protocol("longhaul.harq", "HARQ", {
    { "type", "uint8", "Type", base.DEC, TYPES, 0xc0 },
    { "fragment.index", "uint8", "Place in the code", base.DEC, nil, 0x3f },
    { "fragment.block", "uint24", "Block" },
    { "fragment.serial", "uint24", "Serial of the block's sending" },
    { "fragment.floor", "uint24", "No block before is sent again" },
    { "fragment.redundant", "bool", "Redundancy" },
    { "content.first", "bool", "The block starts a packet", 8, 0x80 },
    { "content.last", "bool", "The block ends a packet", 8, 0x40 },
    { "content.padding", "uint8", "Padding of the block", base.DEC, nil, 0x3f },
    { "fragment.data", "bytes", "Fragment" },
})

--- A block's first byte, in its first fragment. Where that is the whole block, what follows is a packet or a part of one.
local function content(range, stream, block, pinfo, tree, root, about)
    local fields = range(0, 1):uint()
    for _, key in ipairs({ "content.first", "content.last", "content.padding" }) do
        tree:add(F[key], range(0, 1))
    end
    local length = range:len() - 1 - bit.band(fields, 0x3f)
    if about.data_fragments == 1 and length > 0 then
        local first, last = bit.band(fields, 0x80) ~= 0, bit.band(fields, 0x40) ~= 0
        packet.payload(range(1, length), pinfo, tree, root, F.payload,
            { about = about, stream = stream, number = block, space = SPACE, first = first, last = last })
    end
end

local function fragment(tvb, kind, pinfo, tree, root, about)
    local header = 4 + 3 * kind
    if tvb:len() <= header then
        return notes.refuse(tree, pinfo, "truncated")
    end
    local index, block = bit.band(tvb(0, 1):uint(), 0x3f), tvb(1, 3):uint()
    tree:add(F["fragment.index"], tvb(0, 1))
    tree:add(F["fragment.block"], tvb(1, 3))
    local said = string.format(", block %d, fragment %d", block, index)
    if kind > 0 then
        tree:add(F["fragment.serial"], tvb(4, 3))
        said = said .. ", serial " .. tvb(4, 3):uint()
    end
    if kind > 1 then tree:add(F["fragment.floor"], tvb(7, 3)) end
    local redundant = index >= about.data_fragments
    tree:add(F["fragment.redundant"], tvb(0, 1), redundant):set_generated()
    notes.say(pinfo, said .. (redundant and ", redundancy" or ""))
    tree:add(F["fragment.data"], tvb(header))
    if index == 0 then content(tvb(header), kind == 0 and "once" or "window", block, pinfo, tree, root, about) end
end

longhaul.frame.dissectors.harq = function(tvb, pinfo, root, about)
    local tree = root:add(harq, tvb())
    tree:add(F.type, tvb(0, 1))
    local kind = bit.rshift(tvb(0, 1):uint(), 6)
    if kind < 3 then
        return fragment(tvb, kind, pinfo, tree, root, about)
    end
    if bit.band(tvb(0, 1):uint(), 0x3f) ~= 0 or tvb:len() == 1 then
        return notes.refuse(tree, pinfo, "no report")
    end
    local frame = arq.dissect(tvb(1):tvb(), pinfo, tree, F)
    if frame and (frame.class ~= 0 or frame.payload) then
        notes.refuse(tree, pinfo, "no report")
    end
end
