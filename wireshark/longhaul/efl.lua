-- EFL framing: 9 bits of length, the body, 31 check bits. The layout is in crates/link/src/efl.rs, the code in efl/check.rs.
--
-- The body lies across the bytes, so it is shifted into a buffer of its own. With encryption it stays closed, and the
-- check bits, which then cover what the line carried before, are not checked.

local longhaul = rawget(_G, "longhaul")
if not longhaul or longhaul.efl then return end
local notes = longhaul.notes

local efl = Proto("longhaul.efl", "EFL framing")
local F, list = longhaul.fields("longhaul.efl", {
    { "preamble", "bytes", "Preamble" },
    { "length", "uint16", "Length of the body", base.DEC, nil, 0xff80 },
    { "check", "uint32", "Check bits", base.HEX, nil, 0x7fffffff },
    { "check.ok", "bool", "The check bits are right" },
    { "body", "bytes", "Body, encrypted" },
})
efl.fields = list
longhaul.efl = {}

local OVERHEAD, PREAMBLE = 5, 16
-- The generator's lower terms, moved up as in efl/check.rs.
local REGISTER = bit.tobit(0x8c60295e)

local table_of_byte = {}
for byte = 0, 255 do
    local register = bit.lshift(byte, 24)
    for _ = 1, 8 do
        local carry = bit.band(register, bit.tobit(0x80000000)) ~= 0
        register = bit.lshift(register, 1)
        if carry then register = bit.bxor(register, REGISTER) end
    end
    table_of_byte[byte] = register
end

--- The check bits over the length, of which the first bit counts inverted, and the body.
local function check_of(length, body)
    local register = 0
    local function update(byte)
        local at = bit.band(bit.bxor(bit.rshift(register, 24), byte), 0xff)
        register = bit.bxor(bit.lshift(register, 8), table_of_byte[at])
    end
    local head = bit.bxor(length, 0x100)
    update(bit.rshift(head, 8))
    update(bit.band(head, 0xff))
    for at = 0, body:len() - 1 do update(body:get_index(at)) end
    return bit.rshift(register, 1)
end

--- `length` bytes of a range from its tenth bit on.
local function shifted(range, length)
    local bytes = range:bytes()
    local body = ByteArray.new()
    body:set_size(length)
    for at = 0, length - 1 do
        local high, low = bytes:get_index(at + 1), bytes:get_index(at + 2)
        body:set_index(at, bit.band(bit.bor(bit.lshift(high, 1), bit.rshift(low, 7)), 0xff))
    end
    return body
end

--- The body of a frame as a buffer of its own, if it can be read.
function longhaul.efl.open(tvb, pinfo, root, about)
    local tree = root:add(efl, tvb())
    local at = 0
    if about.preamble then
        if tvb:len() < PREAMBLE + OVERHEAD then
            return notes.refuse(tree, pinfo, "truncated")
        end
        tree:add(F.preamble, tvb(0, PREAMBLE))
        at = PREAMBLE
    end
    local frame = tvb:len() - at >= OVERHEAD and tvb(at) or nil
    if frame == nil then
        return notes.refuse(tree, pinfo, "truncated")
    end
    local length = bit.rshift(frame(0, 2):uint(), 7)
    tree:add(F.length, frame(0, 2))
    if length ~= frame:len() - OVERHEAD then
        tree:add_proto_expert_info(notes.bad_check, "The length is not the frame's")
        notes.say(pinfo, ", a wrong length")
        return nil
    end
    local check = frame(frame:len() - 4, 4)
    local field = tree:add(F.check, check)
    if about.encrypted then
        tree:add(F.body, frame(1, frame:len() - 4))
        notes.say(pinfo, string.format(", %d bytes, encrypted", length))
        return nil
    end
    local body = shifted(frame, length)
    local ok = check_of(length, body) == bit.band(check:uint(), 0x7fffffff)
    tree:add(F["check.ok"], check, ok):set_generated()
    if not ok then
        field:add_proto_expert_info(notes.bad_check)
        notes.say(pinfo, ", wrong check bits")
        return nil
    end
    return length > 0 and body:tvb("EFL body") or nil
end
