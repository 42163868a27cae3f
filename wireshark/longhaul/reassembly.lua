-- Packets that are spread over several frames. A packet is shown at the frame with which it is complete, the first time that this
-- is so. Parts count only if their frames came intact.

local longhaul = rawget(_G, "longhaul")
if not longhaul or longhaul.reassembly then return end
local reassembly = {}
longhaul.reassembly = reassembly

-- By stream: parts by number, and the highest number. By frame of the file: the packet that it completed.
local streams, packets = {}, {}
-- Parts of one packet at most: 64 KB in frames of a few bytes.
local MOST_PARTS = 65536

--- Forgets everything: another file is read.
function reassembly.reset()
    streams, packets = {}, {}
end

--- A number as it would be if numbers did not come again: half of them lie ahead of the highest so far.
local function unwrapped(stream, number, space)
    local ahead = (number - stream.highest) % space
    if ahead > space / 2 then ahead = ahead - space end
    local full = stream.highest + ahead
    stream.highest = math.max(stream.highest, full)
    return full
end

--- Adds the part with this unwrapped number, and returns the first and last number of the run that it is in: of parts one behind
-- the other, all of one packet. Only the two ends of a run know where it begins and ends, so that a part costs the same however
-- long its run is.
local function join(parts, number, part)
    local from, to = number, number
    local before, after = parts[number - 1], parts[number + 1]
    if before and not before.last and not part.first then from = before.from end
    if after and not after.first and not part.last then to = after.to end
    parts[number], part.from, part.to = part, from, to
    parts[from].to, parts[to].from = to, from
    return from, to
end

--- The stream of a part, and the part's unwrapped number in it.
local function place_of(piece)
    local key = piece.about.direction .. "/" .. piece.stream
    local stream = streams[key] or { parts = {}, highest = piece.number }
    streams[key] = stream
    return stream, unwrapped(stream, piece.number, piece.space)
end

--- A packet that is whole in its frame has a number too.
function reassembly.pass(piece, pinfo)
    if not pinfo.visited and piece.about.fate == 0 then place_of(piece) end
end

--- Takes a part of a packet: `piece` has `about` (of the frame), `stream` (a name within the direction), `number`, `space` (how
--- many numbers there are), `first` and `last`. Answers the packet that its frame completes, as bytes and the frames of its parts.
function reassembly.take(piece, range, pinfo)
    if pinfo.visited or piece.about.fate ~= 0 then
        return packets[pinfo.number]
    end
    local stream, number = place_of(piece)
    local parts = stream.parts
    if parts[number] then return nil end
    local from, to = join(parts, number,
        { first = piece.first, last = piece.last, bytes = range:raw(), frame = pinfo.number })
    if not (parts[from].first and parts[to].last) or to - from >= MOST_PARTS then return nil end
    local bytes, frames = {}, {}
    for at = from, to do
        local part = parts[at]
        bytes[#bytes + 1], frames[#frames + 1] = part.bytes, part.frame
        part.bytes = nil
    end
    packets[pinfo.number] = { bytes = table.concat(bytes), frames = frames }
    return packets[pinfo.number]
end
