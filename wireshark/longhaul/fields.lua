-- A protocol's fields, made from a list.

local longhaul = rawget(_G, "longhaul")
if not longhaul or longhaul.fields then return end

--- Fields by name: `specification` is a list of { key, type, title, base or size or values, mask }.
function longhaul.fields(prefix, specification)
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
