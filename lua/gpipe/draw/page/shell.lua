-- lua/gpipe/draw/page/shell.lua - what is around every page: head, style, data, script.
--
-- Everything is in the page itself: it can be mailed, archived, and opened without a network. The
-- order of the parts matters: the script comes last and finds what it draws into.

local escape = require "gpipe.io.escape"

local shell = {}

local PAGE = [==[
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
{{POLICY}}<title>{{TITLE}}</title>
<style>
{{STYLE}}
</style>
</head>
<body>
{{BODY}}
<script id="data" type="application/json">{{DATA}}</script>
<script>
{{SCRIPT}}
</script>
</body>
</html>
]==]

local POLICY = '<meta http-equiv="Content-Security-Policy" content="%s">\n'

local function filled(text, parts) return (text:gsub("{{(%u+)}}", parts)) end

--- A page. Words in braces of the body are filled in from `parts`, and {{TITLE}}.
---@param page {title: string, style?: string, body: string, parts?: table<string, string>,
---  data: string, script: string, policy?: string} style: beside what all pages share; data: JSON;
---  policy: what the page may load
---@return string
function shell.render(page)
  local parts = { TITLE = escape.xml(page.title) }
  for name, text in pairs(page.parts or {}) do parts[name] = text end
  local body = filled(page.body, parts)
  return filled(PAGE, {
    TITLE = parts.TITLE, BODY = body, DATA = page.data, SCRIPT = page.script,
    STYLE = require "gpipe.draw.page.style" .. (page.style or ""),
    POLICY = page.policy and POLICY:format(escape.xml(page.policy)) or "",
  })
end

return shell
