-- Packets that are spread over several frames. A packet is shown at the frame with which it is complete, the first time that this
-- is so. Parts count only if their frames came intact.

local longhaul = rawget(_G, "longhaul")
if not longhaul or longhaul.reassembly then return end
local reassembly = {}
longhaul.reassembly = reassembly

-- By stream: parts by number. By frame of the file: the packet that it completed.
local streams, packets = {}, {}
-- Parts of one packet at most: 64 KB in frames of a few bytes.
local MOST_PARTS = 65536

--- Forgets everything: another file is read.
function reassembly.reset()
    streams, packets = {}, {}
end

--- The parts of the packet that has part `number`, in order, if they are all there.
local function whole(parts, number, space)
    local start = number
    for _ = 1, MOST_PARTS do
        if parts[start].first then break end
        start = (start - 1) % space
        if not parts[start] or parts[start].last then return nil end
    end
    local list = {}
    for place = 0, MOST_PARTS do
        local part = parts[(start + place) % space]
        if not part or part.first ~= (place == 0) then return nil end
        list[#list + 1] = part
        if part.last then return list end
    end
    return nil
end

--- Takes a part of a packet: `piece` has `about` (of the frame), `stream` (a name within the direction), `number`, `space` (how
--- many numbers there are), `first` and `last`. Answers the packet that its frame completes, as bytes and the frames of its parts.
function reassembly.take(piece, range, pinfo)
    if pinfo.visited or piece.about.fate ~= 0 then
        return packets[pinfo.number]
    end
    local key = piece.about.direction .. "/" .. piece.stream
    local parts = streams[key] or {}
    streams[key] = parts
    local number, space = piece.number, piece.space
    -- Numbers come again: by then those of half a round ago are of the past.
    parts[(number + space / 2) % space] = nil
    if parts[number] then return nil end
    parts[number] = { first = piece.first, last = piece.last, bytes = range:raw(), frame = pinfo.number }
    local list = whole(parts, number, space)
    if not list then return nil end
    local bytes, frames = {}, {}
    for at, part in ipairs(list) do
        bytes[at], frames[at] = part.bytes, part.frame
        part.bytes = nil
    end
    packets[pinfo.number] = { bytes = table.concat(bytes), frames = frames }
    return packets[pinfo.number]
end
