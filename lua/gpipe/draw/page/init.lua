-- lua/gpipe/draw/page/init.lua - what is around every HTML page: head, policy, style, data, script.
--
-- Everything is in the page itself: it can be mailed, archived, and opened without a network, and
-- its policy forbids it to load anything else. The order of the parts matters: the script comes
-- last and finds what it draws into.

local escape = require "gpipe.io.escape"
local style = require "gpipe.draw.page.style"

local page = {}

local xml = escape.xml

local PAGE = [==[
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
{{HEAD}}<title>{{TITLE}}</title>
<style>
{{STYLE}}
</style>
</head>
<body>
{{BODY}}
{{DATA}}<script>
{{SCRIPT}}
</script>
</body>
</html>
]==]

local META = '<meta %s="%s" content="%s">\n'
local POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
local DATA = '<script id="data" type="application/json">%s</script>\n'

local function filled(text, parts) return (text:gsub("{{(%u+)}}", parts)) end

--- The line in the head that names what made a page.
---@param generator string
---@return string
function page.generator(generator) return META:format("name", "generator", xml(generator)) end

--- Render a page. Words in braces of the body are filled in from `parts`, and {{TITLE}}.
---@param o {title: string, generator?: string, style?: string, body: string,
---  parts?: table<string, string>, data?: string, script: string, loads?: string} style: added to
---  what all pages share; data: JSON; loads: what the policy allows, beside the page itself
---@return string
function page.render(o)
  local parts = { TITLE = xml(o.title) }
  for name, text in pairs(o.parts or {}) do parts[name] = text end
  local policy = o.loads and POLICY .. "; " .. o.loads or POLICY
  return filled(PAGE, {
    HEAD = (o.generator and page.generator(o.generator) or "")
      .. META:format("http-equiv", "Content-Security-Policy", xml(policy)),
    TITLE = parts.TITLE, STYLE = style .. (o.style or ""), BODY = filled(o.body, parts),
    DATA = o.data and DATA:format(o.data) or "", SCRIPT = o.script,
  })
end

--- Join scripts into one function, so that nothing else on the page sees their names.
---@param ... string
---@return string
function page.enclose(...) return "(() => {\n" .. table.concat { ... } .. "})();\n" end

--- A row of a table; its cells become text, never markup.
---@param tag "th"|"td"
---@param list string[]
---@return string
function page.row(tag, list)
  local cells = {}
  for i, value in ipairs(list) do cells[i] = ("<%s>%s</%s>"):format(tag, xml(value), tag) end
  return "<tr>" .. table.concat(cells) .. "</tr>"
end

return page
