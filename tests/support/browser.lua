-- tests/support/browser.lua - loads a page in a browser, where one is installed.

local child = dofile "tests/child.lua"

local browser = {}

local NAMES = { "chromium", "chromium-browser", "google-chrome" }

-- The browser's files go to a temporary folder, which is removed.
local COMMAND = "d=$(mktemp -d); %s --headless --no-sandbox --disable-gpu --user-data-dir=$d "
  .. "--enable-logging=stderr --window-size=1200,900 --virtual-time-budget=%d --dump-dom %s; r=$?; "
  .. "rm -rf $d; exit $r"

--- Return the program's name; nil where there is none.
---@return string?
function browser.find()
  for _, name in ipairs(NAMES) do
    if child.has(name) then return name end
  end
end

--- Return the document after its scripts have run, and the errors that they reported.
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
