-- A frame of `longhaul run --pcap LINK`: the pseudo-header, and whose protocol the rest is.
-- The layout is in crates/lab/src/observe/frames/pseudo_header.rs.

local longhaul = rawget(_G, "longhaul")
if not longhaul or longhaul.frame then return end
local notes = longhaul.notes

local PROTOCOLS = { [1] = "plain", [2] = "cotmll", [3] = "wide", [4] = "slacp", [5] = "coded", [6] = "harq" }
local NAMES = {
    [1] = "plain", [2] = "COTMLL", [3] = "wide COTMLL", [4] = "SLACP", [5] = "coded ARQ", [6] = "HARQ",
}
local DIRECTIONS = { [0] = "down", [1] = "up" }
local FATES = { [0] = "intact", [1] = "damaged", [2] = "lost" }
local KINDS = { [0] = "new", [1] = "retransmission", [2] = "filler", [3] = "repair", [4] = "control" }
local VERSION, SHORTEST = 1, 28

local frame = Proto("longhaul", "Longhaul link frame")
local F, list = longhaul.fields("longhaul", {
    { "version", "uint8", "Version" },
    { "header_length", "uint8", "Length of this header" },
    { "protocol", "uint8", "Protocol", base.DEC, NAMES },
    { "options", "uint8", "Options", base.HEX },
    { "options.efl", "bool", "EFL framing", 8, 0x02 },
    { "options.encrypted", "bool", "Encrypted", 8, 0x04 },
    { "options.preamble", "bool", "A preamble first", 8, 0x08 },
    { "direction", "uint8", "Direction", base.DEC, DIRECTIONS },
    { "fate", "uint8", "Fate", base.DEC, FATES },
    { "kind", "uint8", "Kind", base.DEC, KINDS },
    { "data_fragments", "uint8", "Fragments with data in a block" },
    { "bits", "uint32", "Bits on the line" },
    { "number", "uint64", "Number in its direction" },
    { "under_way", "uint64", "Under way, first bit to last (ns)" },
    { "part", "frame", "Part of the packet in frame" },
})
frame.fields = list
frame.experts = { notes.malformed, notes.damaged, notes.lost, notes.bad_check, notes.bad_packet }
-- By protocol: function(tvb, pinfo, root, about).
longhaul.frame = { dissectors = {}, part_field = F.part }
frame.init = longhaul.reassembly.reset

local function pseudo_header(tvb, tree)
    local about = {
        options = tvb(3, 1):uint(),
        direction = tvb(4, 1):uint(),
        fate = tvb(5, 1):uint(),
        data_fragments = tvb(7, 1):uint(),
    }
    tree:add(F.version, tvb(0, 1))
    tree:add(F.header_length, tvb(1, 1))
    tree:add(F.protocol, tvb(2, 1))
    local options = tree:add(F.options, tvb(3, 1))
    for _, name in ipairs({ "efl", "encrypted", "preamble" }) do
        options:add(F["options." .. name], tvb(3, 1))
    end
    about.efl = bit.band(about.options, 2) ~= 0
    about.encrypted = bit.band(about.options, 4) ~= 0
    about.preamble = bit.band(about.options, 8) ~= 0
    tree:add(F.direction, tvb(4, 1))
    local fate = tree:add(F.fate, tvb(5, 1))
    if about.fate == 1 then fate:add_proto_expert_info(notes.damaged) end
    if about.fate == 2 then fate:add_proto_expert_info(notes.lost) end
    tree:add(F.kind, tvb(6, 1))
    if about.data_fragments > 0 then tree:add(F.data_fragments, tvb(7, 1)) end
    tree:add(F.bits, tvb(8, 4))
    tree:add(F.number, tvb(12, 8))
    tree:add(F.under_way, tvb(20, 8))
    return about
end

--- The number in front of a line of the packet list: direction, number, and what went wrong.
local function introduce(tvb, pinfo, about)
    local direction = DIRECTIONS[tvb(4, 1):uint()] or "?"
    local fate = about.fate ~= 0 and " [" .. (FATES[about.fate] or "?") .. "]" or ""
    local kind = KINDS[tvb(6, 1):uint()] or "?"
    pinfo.cols.info = string.format("%s %s%s %s", direction, tostring(tvb(12, 8):uint64()), fate, kind)
end

function frame.dissector(tvb, pinfo, root)
    pinfo.cols.protocol = "Longhaul"
    pinfo.cols.info = ""
    local tree = root:add(frame, tvb(0, math.min(SHORTEST, tvb:len())))
    if tvb:len() < SHORTEST or tvb(0, 1):uint() ~= VERSION or tvb(1, 1):uint() < SHORTEST then
        notes.refuse(tree, pinfo, "no pseudo-header of this version")
        return tvb:len()
    end
    local about = pseudo_header(tvb, tree)
    introduce(tvb, pinfo, about)
    local length, protocol = tvb(1, 1):uint(), tvb(2, 1):uint()
    local dissect = longhaul.frame.dissectors[PROTOCOLS[protocol]]
    if dissect == nil then
        notes.refuse(tree, pinfo, "unknown protocol")
        return tvb:len()
    end
    if length >= tvb:len() then
        notes.refuse(tree, pinfo, "an empty frame")
        return tvb:len()
    end
    local body = tvb(length):tvb()
    if about.efl then
        body = longhaul.efl.open(body, pinfo, root, about)
    end
    if body then
        dissect(body, pinfo, root, about)
    end
    pinfo.cols.protocol = NAMES[protocol]
    return tvb:len()
end

DissectorTable.get("wtap_encap"):add(wtap.USER0, frame)
