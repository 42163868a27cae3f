-- What the dissectors share: making fields, handing over IP packets, and complaints.

local longhaul = rawget(_G, "longhaul")
if not longhaul or longhaul.common then return end
local common = {}
longhaul.common = common

--- Fields by name: `specification` is a list of { key, type, title, base or size or values, mask }.
function common.fields(prefix, specification)
    local fields, list = {}, {}
    for _, one in ipairs(specification) do
        local key, kind, title = one[1], one[2], one[3]
        local abbreviation = prefix .. "." .. key
        local field
        if kind == "bool" then
            -- { key, "bool", title, bits of the whole, mask }
            field = ProtoField.bool(abbreviation, title, one[4] or base.NONE, { "yes", "no" }, one[5] or 0x0)
        elseif kind == "bytes" then
            field = ProtoField.bytes(abbreviation, title)
        elseif kind == "frame" then
            field = ProtoField.framenum(abbreviation, title)
        else
            -- { key, "uint8" to "uint64", title, base, values, mask }
            field = ProtoField[kind](abbreviation, title, one[4] or base.DEC, one[5], one[6])
        end
        fields[key] = field
        list[#list + 1] = field
    end
    return fields, list
end

common.malformed = ProtoExpert.new("longhaul.malformed", "Malformed frame", expert.group.MALFORMED,
    expert.severity.ERROR)
common.damaged = ProtoExpert.new("longhaul.damaged", "The channel damaged this frame", expert.group.CHECKSUM,
    expert.severity.WARN)
common.lost = ProtoExpert.new("longhaul.lost", "The channel lost this frame", expert.group.SEQUENCE,
    expert.severity.WARN)
common.bad_packet = ProtoExpert.new("longhaul.bad_packet", "Wireshark cannot read the packet inside",
    expert.group.MALFORMED, expert.severity.WARN)
common.bad_check = ProtoExpert.new("longhaul.bad_check", "The check bits are wrong", expert.group.CHECKSUM,
    expert.severity.ERROR)

--- Notes that a frame is none that a sender writes, and why.
function common.refuse(tree, pinfo, why)
    tree:add_proto_expert_info(common.malformed, why)
    pinfo.cols.info:append(" [malformed: " .. why .. "]")
end

--- Appends to the one line that the packet list shows.
function common.say(pinfo, text)
    pinfo.cols.info:append(text)
end

-- The metadata in front of a super-segment: crates/gateway/src/tun/offload.rs.
local super_segment = Proto("longhaul.super_segment", "Longhaul super-segment")
local F, list = common.fields("longhaul.super_segment", {
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
        common.refuse(tree, pinfo, "no packet")
        return nil
    end
    tree:add(F.kind, tvb(0, 1))
    tree:add(F.cwr, tvb(0, 1))
    tree:add(F.checksum_offset, tvb(1, 1))
    tree:add_le(F.size, tvb(2, 2))
    tree:add_le(F.header_length, tvb(4, 2))
    tree:add_le(F.checksum_start, tvb(6, 2))
    common.say(pinfo, ", super-segment")
    return tvb(METADATA):tvb()
end

local ipv4, ipv6 = Dissector.get("ip"), Dissector.get("ipv6")

--- Hands a whole packet to Wireshark's own dissector of IP. What was said of the frame stays in front of it.
function common.packet(tvb, pinfo, root)
    if tvb and tvb:len() > 0 and bit.rshift(tvb(0, 1):uint(), 4) == 0 then
        tvb = metadata(tvb, pinfo, root)
    end
    if not tvb or tvb:len() == 0 then return end
    local version = bit.rshift(tvb(0, 1):uint(), 4)
    local dissector = version == 4 and ipv4 or version == 6 and ipv6 or nil
    if not dissector then return end
    common.say(pinfo, ": ")
    pinfo.cols.info:fence()
    -- A packet that is cut short ends its dissector, and would end ours.
    if not pcall(dissector.call, dissector, tvb, pinfo, root) then
        root:add_proto_expert_info(common.bad_packet)
        common.say(pinfo, " [malformed packet inside]")
    end
end

--- The payload of a frame, shown as `field`, and the packet that it is or completes. `piece` says which part it is, as
--- reassembly.lua describes it.
function common.payload(range, pinfo, tree, root, field, piece)
    if range == nil or range:len() == 0 then return end
    tree:add(field, range)
    if piece.first and piece.last then
        longhaul.reassembly.pass(piece, pinfo)
        return common.packet(range:tvb(), pinfo, root)
    end
    local packet = longhaul.reassembly.take(piece, range, pinfo)
    if not packet then return end
    local bytes = ByteArray.new(packet.bytes, true):tvb("Packet")
    for _, number in ipairs(packet.frames) do
        tree:add(longhaul.frame.part_field, bytes(), number):set_generated()
    end
    common.say(pinfo, string.format(", packet of %d parts", #packet.frames))
    common.packet(bytes, pinfo, root)
end

--- Which part of a packet a frame carries, in words.
function common.part(first, last)
    if first and last then return "whole packet" end
    if first then return "first part" end
    if last then return "last part" end
    return "middle part"
end
