-- What is noted of a frame: the expert information of all our protocols, and its line in the packet list.

local longhaul = rawget(_G, "longhaul")
if not longhaul or longhaul.notes then return end
local notes = {}
longhaul.notes = notes

notes.malformed = ProtoExpert.new("longhaul.malformed", "Malformed frame", expert.group.MALFORMED,
    expert.severity.ERROR)
notes.damaged = ProtoExpert.new("longhaul.damaged", "The channel damaged this frame", expert.group.CHECKSUM,
    expert.severity.WARN)
notes.lost = ProtoExpert.new("longhaul.lost", "The channel lost this frame", expert.group.SEQUENCE,
    expert.severity.WARN)
notes.bad_packet = ProtoExpert.new("longhaul.bad_packet", "Wireshark cannot read the packet inside",
    expert.group.MALFORMED, expert.severity.WARN)
notes.bad_check = ProtoExpert.new("longhaul.bad_check", "The check bits are wrong", expert.group.CHECKSUM,
    expert.severity.ERROR)

--- Notes that a frame is none that a sender writes, and why.
function notes.refuse(tree, pinfo, why)
    tree:add_proto_expert_info(notes.malformed, why)
    pinfo.cols.info:append(" [malformed: " .. why .. "]")
end

--- Appends to the one line that the packet list shows.
function notes.say(pinfo, text)
    pinfo.cols.info:append(text)
end
