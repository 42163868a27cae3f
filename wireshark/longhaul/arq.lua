-- The frames that wide COTMLL, SLACP, coded ARQ and HARQ's reports have in common: a trailer of 15 bytes with an
-- extension in front of it. The layout is in crates/link/src/arq/frame.rs; what a repair carries is in coded/coverage.rs
-- and slacp/block.rs.

local longhaul = rawget(_G, "longhaul")
if not longhaul or longhaul.arq then return end
local notes, packet = longhaul.notes, longhaul.packet
local arq = {}
longhaul.arq = arq

local CLASSES = { [0] = "control", [1] = "reliable", [2] = "unreliable", [3] = "repair" }
local TRAILER, SPACE = 15, 2 ^ 24

--- A protocol with these frames: its fields are named after `prefix`; `more` are those that it alone has.
function arq.protocol(prefix, name, more)
    local specification = {
        { "flags", "uint8", "Flags", base.HEX },
        { "runs", "bool", "Losses come in runs", 8, 0x80 },
        { "class", "uint8", "Class", base.DEC, CLASSES, 0x60 },
        { "first", "bool", "Starts a packet", 8, 0x10 },
        { "last", "bool", "Ends a packet", 8, 0x08 },
        { "open", "bool", "Nothing beyond the report has come", 8, 0x04 },
        { "has_place", "bool", "Has a place in a block", 8, 0x02 },
        { "has_floor", "bool", "Has a floor", 8, 0x01 },
        { "extension_length", "uint8", "Length of the extension" },
        { "seq", "uint24", "Sequence number" },
        { "serial", "uint24", "Serial" },
        { "ack", "uint24", "Next frame expected" },
        { "heard", "uint24", "Newest serial heard" },
        { "loss", "uint8", "Losses heard of, in 256ths" },
        { "back", "uint32", "Frames back to the flow's last packet" },
        { "block", "uint16", "Block" },
        { "index", "uint8", "Place in the block" },
        { "floor", "uint24", "No frame before is sent again" },
        { "report.from", "uint32", "The report starts, beyond the next frame expected" },
        { "report.missing", "uint32", "Missing" },
        { "report.received", "uint32", "Received" },
        { "payload", "bytes", "Payload" },
    }
    for _, one in ipairs(more or {}) do specification[#specification + 1] = one end
    local proto = Proto(prefix, name)
    local fields, list = longhaul.fields(prefix, specification)
    proto.fields = list
    return proto, fields
end

--- Reads a number of seven bits a byte, the lowest first; nil where it does not end within four bytes.
function arq.varint(range, at)
    local number = 0
    for place = 0, 3 do
        if at + place >= range:len() then return nil end
        local byte = range(at + place, 1):uint()
        number = number + bit.band(byte, 0x7f) * 2 ^ (7 * place)
        if byte < 0x80 then return number, range(at, place + 1), at + place + 1 end
    end
    return nil
end

--- The report in an extension, from `at` on: false where it ends early.
local function report(extension, at, tree, F)
    if at >= extension:len() then return true end
    local keys = { "report.from", "report.missing", "report.received" }
    local place = 1
    while at < extension:len() do
        local number, range, next = arq.varint(extension, at)
        if number == nil then return false end
        tree:add(F[keys[place]], range, number)
        at, place = next, place == 2 and 3 or 2
    end
    -- After the start come pairs.
    return place == 2
end

--- What an extension starts with, before the report: the distance back, the place and the floor; nil if it is too short.
local function extras(extension, frame, tree, F)
    local at = 0
    if frame.first and frame.class == 1 then
        local number, range, next = arq.varint(extension, at)
        if number == nil then return nil end
        tree:add(F.back, range, number)
        at = next
    end
    if bit.band(frame.flags, 2) ~= 0 then
        if at + 3 > extension:len() then return nil end
        tree:add(F.block, extension(at, 2))
        tree:add(F.index, extension(at + 2, 1))
        frame.block, frame.index = extension(at, 2):uint(), extension(at + 2, 1):uint()
        at = at + 3
    end
    if bit.band(frame.flags, 1) ~= 0 then
        if at + 3 > extension:len() then return nil end
        tree:add(F.floor, extension(at, 3))
        at = at + 3
    end
    return at
end

local function describe(pinfo, frame)
    if frame.class == 1 or frame.class == 2 then
        local part = packet.part(frame.first, frame.last)
        notes.say(pinfo, string.format(", %s %d, %s", CLASSES[frame.class], frame.seq, part))
    end
    notes.say(pinfo, string.format(", serial %d, ack %d, heard %d", frame.serial, frame.ack, frame.heard))
end

--- Dissects a frame and answers its fields with `payload`, a range or nil; answers nil if it is none.
function arq.dissect(tvb, pinfo, tree, F)
    local size = tvb:len()
    if size < TRAILER then
        return notes.refuse(tree, pinfo, "truncated")
    end
    local trailer = tvb(size - TRAILER, TRAILER)
    local flags, extension_length = trailer(0, 1):uint(), trailer(1, 1):uint()
    local frame = {
        flags = flags,
        class = bit.band(bit.rshift(flags, 5), 3),
        first = bit.band(flags, 0x10) ~= 0,
        last = bit.band(flags, 0x08) ~= 0,
        seq = trailer(2, 3):uint(),
        serial = trailer(5, 3):uint(),
        ack = trailer(8, 3):uint(),
        heard = trailer(11, 3):uint(),
    }
    local bits = tree:add(F.flags, trailer(0, 1))
    for _, key in ipairs({ "runs", "class", "first", "last", "open", "has_place", "has_floor" }) do
        bits:add(F[key], trailer(0, 1))
    end
    tree:add(F.extension_length, trailer(1, 1))
    for place, key in ipairs({ "seq", "serial", "ack", "heard" }) do
        tree:add(F[key], trailer(place * 3 - 1, 3))
    end
    tree:add(F.loss, trailer(14, 1))
    describe(pinfo, frame)
    local payload_length = size - TRAILER - extension_length
    if payload_length < 0 then
        return notes.refuse(tree, pinfo, "an extension longer than the frame")
    end
    if extension_length > 0 then
        local extension = tvb(payload_length, extension_length)
        local at = extras(extension, frame, tree, F)
        if at == nil or not report(extension, at, tree, F) then
            return notes.refuse(tree, pinfo, "an extension that ends early")
        end
    elseif bit.band(flags, 3) ~= 0 or frame.first and frame.class == 1 then
        return notes.refuse(tree, pinfo, "an extension that ends early")
    end
    frame.payload = payload_length > 0 and tvb(0, payload_length) or nil
    return frame
end

--- The payload of a frame with data; `window` names those that share sequence numbers.
local function payload(frame, window, about, pinfo, tree, root, F)
    local stream = string.format("%s %d", window, frame.class)
    packet.payload(frame.payload, pinfo, tree, root, F.payload, { about = about, stream = stream, number = frame.seq,
        space = SPACE, first = frame.first, last = frame.last })
end

-- Wide COTMLL: the frames alone.
local wide, W = arq.protocol("longhaul.wide", "Wide COTMLL")
longhaul.frame.dissectors.wide = function(tvb, pinfo, root, about)
    local tree = root:add(wide, tvb())
    local frame = arq.dissect(tvb, pinfo, tree, W)
    if frame then
        payload(frame, "wide", about, pinfo, tree, root, W)
    end
end

-- SLACP: control frames may ask, or tell for how long nothing has come; a repair is of a block of frames.
local slacp, S = arq.protocol("longhaul.slacp", "SLACP", {
    { "asks", "bool", "Asks for a report" },
    { "silence", "uint24", "Nothing has come for (ms)" },
    { "sources", "uint24", "Frames that the block protects" },
    { "redundancy", "bytes", "Redundancy" },
})
longhaul.frame.dissectors.slacp = function(tvb, pinfo, root, about)
    local tree = root:add(slacp, tvb())
    local frame = arq.dissect(tvb, pinfo, tree, S)
    if not frame then return end
    local trailer = tvb(tvb:len() - TRAILER, TRAILER)
    if frame.class == 0 then
        if frame.first then tree:add(S.asks, trailer(0, 1), true):set_generated() end
        if frame.last then tree:add(S.silence, trailer(2, 3)) end
    elseif frame.class == 3 then
        tree:add(S.sources, trailer(2, 3))
        if frame.payload then tree:add(S.redundancy, frame.payload) end
        notes.say(pinfo, string.format(", block %d, place %d", frame.block or 0, frame.index or 0))
        if frame.block == nil or frame.index < frame.seq then
            notes.refuse(tree, pinfo, "a repair without a place behind the block's frames")
        end
    else
        payload(frame, "slacp", about, pinfo, tree, root, S)
    end
end

-- Coded ARQ: a class behind the trailer; a repair is a sum of frames, and says which in front of it.
local TREATMENTS = { [0] = "once", [1] = "interactive", [2] = "reliable", [3] = "interactive, expires", [4] = "expires" }
local coded, C = arq.protocol("longhaul.coded", "Coded ARQ", {
    { "treatment", "uint8", "Class of packets", base.DEC, TREATMENTS },
    { "sum.bitmap_length", "uint8", "Length of the bitmap" },
    { "sum.run", "uint32", "Frames up to the last without a gap" },
    { "sum.bitmap", "bytes", "Which frames before the run" },
    { "sum.count", "uint32", "Frames in the sum" },
    { "sum", "bytes", "Sum" },
})

local function ones(range)
    local count = 0
    for at = 0, range:len() - 1 do
        local byte = range(at, 1):uint()
        while byte ~= 0 do
            byte = bit.band(byte, byte - 1)
            count = count + 1
        end
    end
    return count
end

local function sum(sent, last, pinfo, tree)
    if sent == nil then return notes.refuse(tree, pinfo, "a sum of nothing") end
    local length = sent(0, 1):uint()
    local run, run_range, at = arq.varint(sent, 1)
    if run == nil or run == 0 or at + length > sent:len() then
        return notes.refuse(tree, pinfo, "a sum of nothing")
    end
    tree:add(C["sum.bitmap_length"], sent(0, 1))
    tree:add(C["sum.run"], run_range, run)
    local count = run
    if length > 0 then
        tree:add(C["sum.bitmap"], sent(at, length))
        count = count + ones(sent(at, length))
    end
    tree:add(C["sum.count"], sent(0, at + length), count):set_generated()
    if at + length < sent:len() then tree:add(C.sum, sent(at + length)) end
    notes.say(pinfo, string.format(", sum of %d up to %d", count, last))
end

longhaul.frame.dissectors.coded = function(tvb, pinfo, root, about)
    local tree = root:add(coded, tvb())
    local class = tvb(tvb:len() - 1, 1)
    tree:add(C.treatment, class)
    if TREATMENTS[class:uint()] == nil then
        return notes.refuse(tree, pinfo, "an unknown class")
    end
    if class:uint() ~= 2 then notes.say(pinfo, ", " .. TREATMENTS[class:uint()]) end
    if tvb:len() == 1 then return notes.refuse(tree, pinfo, "truncated") end
    local frame = arq.dissect(tvb(0, tvb:len() - 1):tvb(), pinfo, tree, C)
    if not frame then return end
    if frame.class == 3 then
        sum(frame.payload, frame.seq, pinfo, tree)
    else
        payload(frame, "coded " .. class:uint(), about, pinfo, tree, root, C)
    end
end
