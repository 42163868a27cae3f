-- The datagrams of two gateways over UDP. The layout is in crates/tunnel/src/session/wire.rs.
--
-- Payloads and what kind they are of are encrypted and stay closed, as is who the ends are. A handshake is known by its type and length;
-- sealed datagrams look like WireGuard's, so they are shown in conversations of which the file has a handshake, and at the port of the
-- preferences.

local longhaul = rawget(_G, "longhaul")
if not longhaul or longhaul.gateway then return end
longhaul.gateway = true
local notes = longhaul.notes

local TYPES = { [1] = "initiation", [2] = "response", [3] = "challenge", [4] = "sealed", [5] = "denial" }
-- What follows the type: { key, length }. The sealed payload is of any length.
local REST = {
    [1] = { { "sender", 4 }, { "cookie", 44 }, { "noise", 124 }, { "seal", 32 } },
    [2] = { { "sender", 4 }, { "receiver", 4 }, { "noise", 112 }, { "seal", 32 } },
    [3] = { { "receiver", 4 }, { "cookie", 44 }, { "seal", 32 } },
    [5] = { { "receiver", 4 }, { "counter", 8 }, { "seal", 32 } },
}
local HANDSHAKE = { [1] = 208, [2] = 156, [3] = 84, [5] = 48 }
local SEALED_HEADER, TAG, PORT = 16, 16, 51900

local gateway = Proto("longhaul.gateway", "Longhaul gateway")
local F, list = longhaul.fields("longhaul.gateway", {
    { "type", "uint8", "Type", base.DEC, TYPES },
    { "sender", "uint32", "Sender index", base.HEX },
    { "receiver", "uint32", "Receiver index", base.HEX },
    { "cookie", "bytes", "Cookie" },
    { "noise", "bytes", "Noise message" },
    { "seal", "bytes", "Seal" },
    { "counter", "uint64", "Counter" },
    { "path", "uint8", "Path, of several" },
    { "payload", "bytes", "Kind and payload, encrypted" },
    { "payload_length", "uint32", "Length of the payload and its kind" },
    { "tag", "bytes", "Authentication tag" },
})
gateway.fields = list
gateway.prefs.port = Pref.uint("UDP port", PORT, "The port at which gateways listen")

--- The type of a datagram, if it can be one.
local function kind_of(tvb)
    if tvb:len() < 4 or tvb(1, 3):uint() ~= 0 then return nil end
    local kind = tvb(0, 1):uint()
    if HANDSHAKE[kind] then
        return tvb:len() == HANDSHAKE[kind] and kind or nil
    end
    return kind == 4 and tvb:len() >= SEALED_HEADER + 1 + TAG and kind or nil
end

local function handshake(tvb, kind, tree)
    local at = 4
    for _, one in ipairs(REST[kind]) do
        tree:add_le(F[one[1]], tvb(at, one[2]))
        at = at + one[2]
    end
end

local function sealed(tvb, pinfo, tree)
    local length = tvb:len() - SEALED_HEADER - TAG
    tree:add_le(F.receiver, tvb(4, 4))
    -- The highest byte of eight is the path's number: zero where there is one path, and for the first of several.
    local path = tvb(15, 1):uint()
    tree:add_le(F.counter, tvb(8, 7))
    if path > 0 then tree:add(F.path, tvb(15, 1)) end
    tree:add(F.payload_length, tvb(SEALED_HEADER, length), length):set_generated()
    if length > 0 then tree:add(F.payload, tvb(SEALED_HEADER, length)) end
    tree:add(F.tag, tvb(tvb:len() - TAG, TAG))
    notes.say(pinfo, string.format(" to 0x%08x, %scounter %s, %d bytes", tvb(4, 4):le_uint(),
        path > 0 and string.format("path %d, ", path) or "", tostring(tvb(8, 7):le_uint64()), length))
end

function gateway.dissector(tvb, pinfo, root)
    local kind = kind_of(tvb)
    if kind == nil then return 0 end
    pinfo.cols.protocol = "Longhaul"
    pinfo.cols.info = TYPES[kind]
    local tree = root:add(gateway, tvb())
    tree:add(F.type, tvb(0, 1))
    if HANDSHAKE[kind] then
        handshake(tvb, kind, tree)
    else
        sealed(tvb, pinfo, tree)
    end
    return tvb:len()
end

--- Takes a conversation in which a handshake of ours is seen.
local function heuristic(tvb, pinfo, root)
    local kind = kind_of(tvb)
    if kind == nil or not HANDSHAKE[kind] then return false end
    pinfo.conversation = gateway
    gateway.dissector(tvb, pinfo, root)
    return true
end

gateway:register_heuristic("udp", heuristic)
local ports, listening = DissectorTable.get("udp.port"), nil
local function listen(port)
    if listening then ports:remove(listening, gateway) end
    listening = port > 0 and port or nil
    if listening then ports:add(listening, gateway) end
end
listen(PORT)
function gateway.prefs_changed()
    listen(gateway.prefs.port)
end
