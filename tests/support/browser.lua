-- tests/support/browser.lua - a page as a browser shows it, where there is one.

local child = dofile "tests/child.lua"

local browser = {}

local NAMES = { "chromium", "chromium-browser", "google-chrome" }

-- Its files go to a folder of their own, which is removed.
local COMMAND = "d=$(mktemp -d); %s --headless --no-sandbox --disable-gpu --user-data-dir=$d "
  .. "--enable-logging=stderr --window-size=1200,900 --virtual-time-budget=%d --dump-dom %s; r=$?; "
  .. "rm -rf $d; exit $r"

--- The program's name; nil where there is none.
---@return string?
function browser.find()
  for _, name in ipairs(NAMES) do
    if child.has(name) then return name end
  end
end

--- The document after its scripts have run, and what they complained of.
---@param url string
---@param budget? integer milliseconds of the page's own time
---@return string document
---@return string[] complaints
function browser.document(url, budget)
  local out, err, code = child.shell(COMMAND:format(assert(browser.find()), budget or 1000,
    child.quote(url)))
  assert(code == 0, err)
  local complaints = {}
  for line in err:gmatch "[^\n]+" do
    if line:find("CONSOLE", 1, true) then complaints[#complaints + 1] = line end
  end
  return out, complaints
end

return browser
