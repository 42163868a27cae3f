-- Wireshark dissectors for Longhaul's protocols: the file to load. docs/captures.md says how.
--
-- It loads the parts in `longhaul/`. Wireshark loads every file of a plugin folder by itself, in any order; a part
-- that is loaded before this file, or a second time, does nothing.

if rawget(_G, "longhaul") then return end

local here = debug.getinfo(1, "S").source:match("^@?(.*[/\\])") or "./"
_G.longhaul = {}
local parts = {
    "fields", "notes", "reassembly", "packet", "frame", "plain", "cotmll", "arq", "harq", "efl", "gateway", "tcp",
}
for _, part in ipairs(parts) do
    dofile(here .. "longhaul/" .. part .. ".lua")
end
