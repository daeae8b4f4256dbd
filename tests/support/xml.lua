-- tests/support/xml.lua - checks that a text is well-formed XML, and lists its elements.
--
-- It knows enough of XML for what the product writes: elements, attributes, texts, the five named
-- entities.

local xml = {}

local function fail(text, at, why)
  error(("XML: %s at %q"):format(why, text:sub(at, at + 40)), 0)
end

-- Checks that & begins an entity and that there is no bare <.
local function check_text(words)
  local rest = words:gsub("&%a+;", ""):gsub("&#%d+;", "")
  if rest:find "[&<]" then fail(words, 1, "a bare & or <") end
end

local function read_attributes(words)
  local made, at = {}, 1
  while words:find("%S", at) do
    local name, value, stop = words:match('^%s+([%w:-]+)="([^"<]*)"()', at)
    if not name or made[name] then fail(words, at, "no attribute") end
    check_text(value)
    made[name], at = value, stop
  end
  return made
end

--- Return all elements in the order of their begins: {name, attributes, text (directly inside),
--- depth}. Fails where the text is not well-formed.
---@param text string
---@return {name: string, attributes: table, text: string, depth: integer}[]
function xml.elements(text)
  assert(utf8.len(text), "XML: not UTF-8")
  local list, open, at = {}, {}, 1
  while at <= #text do
    local words, from = text:match("^([^<]*)()", at)
    check_text(words)
    if #open > 0 then open[#open].text = open[#open].text .. words
    elseif words:find "%S" then fail(text, at, "text outside") end
    if from > #text then break end
    local slash, name, attributes, closed, stop = text:match("^<(/?)([%w:]+)(.-)(/?)>()", from)
    if not name then fail(text, from, "no tag") end
    if slash == "/" then
      if not open[#open] or open[#open].name ~= name then fail(text, from, "another end") end
      open[#open] = nil
    else
      local element = { name = name, attributes = read_attributes(attributes), text = "",
        depth = #open }
      list[#list + 1] = element
      if closed == "" then open[#open + 1] = element end
    end
    at = stop
  end
  if #open > 0 then fail(text, #text, "no end of " .. open[#open].name) end
  return list
end

return xml
