-- IP packets inside frames: whole ones, super-segments, and those that are put together from parts.

local longhaul = rawget(_G, "longhaul")
if not longhaul or longhaul.packet then return end
local notes = longhaul.notes
local packet = {}
longhaul.packet = packet

-- The metadata in front of a super-segment: crates/tunnel/src/super_segment.rs.
local super_segment = Proto("longhaul.super_segment", "Longhaul super-segment")
local F, list = longhaul.fields("longhaul.super_segment", {
    { "kind", "uint8", "Kind", base.DEC, { [1] = "TCP/IPv4", [2] = "TCP/IPv6", [3] = "UDP" }, 0xf7 },
    { "cwr", "bool", "The first segment has CWR", 8, 0x08 },
    { "checksum_offset", "uint8", "Offset of the checksum" },
    { "size", "uint16", "Payload of each segment" },
    { "header_length", "uint16", "Length of the headers" },
    { "checksum_start", "uint16", "Start of the checksum's sum" },
})
super_segment.fields = list
local METADATA = 8

local function metadata(tvb, pinfo, root)
    local tree = root:add(super_segment, tvb(0, math.min(METADATA, tvb:len())))
    local kind = bit.band(tvb(0, 1):uint(), 0xf7)
    if tvb:len() <= METADATA or kind < 1 or kind > 3 then
        notes.refuse(tree, pinfo, "no packet")
        return nil
    end
    tree:add(F.kind, tvb(0, 1))
    tree:add(F.cwr, tvb(0, 1))
    tree:add(F.checksum_offset, tvb(1, 1))
    tree:add_le(F.size, tvb(2, 2))
    tree:add_le(F.header_length, tvb(4, 2))
    tree:add_le(F.checksum_start, tvb(6, 2))
    notes.say(pinfo, ", super-segment")
    return tvb(METADATA):tvb()
end

local ipv4, ipv6 = Dissector.get("ip"), Dissector.get("ipv6")

--- Hands a whole packet to Wireshark's own dissector of IP. What was said of the frame stays in front of it.
function packet.dissect(tvb, pinfo, root)
    if tvb and tvb:len() > 0 and bit.rshift(tvb(0, 1):uint(), 4) == 0 then
        tvb = metadata(tvb, pinfo, root)
    end
    if not tvb or tvb:len() == 0 then return end
    local version = bit.rshift(tvb(0, 1):uint(), 4)
    local dissector = version == 4 and ipv4 or version == 6 and ipv6 or nil
    if not dissector then return end
    notes.say(pinfo, ": ")
    pinfo.cols.info:fence()
    -- A packet that is cut short ends its dissector, and would end ours.
    if not pcall(dissector.call, dissector, tvb, pinfo, root) then
        root:add_proto_expert_info(notes.bad_packet)
        notes.say(pinfo, " [malformed packet inside]")
    end
end

--- The payload of a frame, shown as `field`, and the packet that it is or completes. `piece` says which part it is, as
--- reassembly.lua describes it.
function packet.payload(range, pinfo, tree, root, field, piece)
    if range == nil or range:len() == 0 then return end
    tree:add(field, range)
    if piece.first and piece.last then
        longhaul.reassembly.pass(piece, pinfo)
        return packet.dissect(range:tvb(), pinfo, root)
    end
    local whole = longhaul.reassembly.take(piece, range, pinfo)
    if not whole then return end
    local bytes = ByteArray.new(whole.bytes, true):tvb("Packet")
    for _, number in ipairs(whole.frames) do
        tree:add(longhaul.frame.part_field, bytes(), number):set_generated()
    end
    notes.say(pinfo, string.format(", packet of %d parts", #whole.frames))
    packet.dissect(bytes, pinfo, root)
end

--- Which part of a packet a frame carries, in words.
function packet.part(first, last)
    if first and last then return "whole packet" end
    if first then return "first part" end
    if last then return "last part" end
    return "middle part"
end
