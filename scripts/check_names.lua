-- scripts/check_names.lua - checks that what comments and headers name exists.
--
-- A comment that names a file of a folder that moved misleads; a public function that no binding
-- and no test calls is either dead or untested. Run from the root of the checkout; prints each
-- fault, exits 1.

package.path = "./?.lua;" .. package.path
local judge = require "scripts.judge"
local complain, lines_of, read = judge.complain, judge.lines_of, judge.read

local files = lines_of "git ls-files runtime bindings lua scripts tests examples CMakeLists.txt"
local exists, by_name = {}, {}
for _, path in ipairs(files) do
  exists[path] = true
  by_name[path:match "[^/]+$"] = true
end

-- ---- files named in comments --------------------------------------------------------------------

-- Where a name in a comment is looked for: as it stands, below the roots that includes and modules
-- know, beside the file and below its parents.
local roots = { "", "runtime/", "bindings/", "lua/", "lua/gpipe/", "tests/", "tests/c/" }

-- Files of Lua itself, and a project whose name looks like a file.
local foreign = { ["lstate.c"] = true, ["ldebug.c"] = true, ["llm.c"] = true }

local function is_there(name, path)
  if foreign[name] then return true end
  for _, root in ipairs(roots) do
    if exists[root .. name] then return true end
  end
  local folder = path:match "^(.*)/[^/]*$"
  while folder do
    if exists[folder .. "/" .. name] then return true end
    folder = folder:match "^(.*)/[^/]*$"
  end
  return by_name[name] ~= nil and not name:find("/", 1, true)
end

local suffixes = { c = true, h = true, cu = true, cuh = true, inc = true, lua = true, def = true }

-- Returns the comment in a line, if it has one: the whole line if it begins as one, else what
-- follows a marker.
local function comment_of(line, is_lua)
  if is_lua then return line:match "%-%-(.*)$" end
  return line:match "^%s*%*%s(.*)$" or line:match "/%*(.*)$" or line:match "//(.*)$"
end

-- Looks at names of the project's own files only: files that users write (train.lua) and headers of
-- other projects are not ours.
local function check_comments(path)
  local is_lua, number = path:find "%.lua$" ~= nil, 0
  for line in io.lines(path) do
    number = number + 1
    for name, suffix in (comment_of(line, is_lua) or ""):gmatch "([%w_][%w_/-]*%.(%l+))%f[^%w_]" do
      local ours = suffixes[suffix] and (name:find("/", 1, true) or suffix == "c" or suffix == "cu")
      local root = name:match "^(%w+)/"
      if ours and not is_there(name, path) and root ~= "oneapi" and root ~= "build" then
        complain("%s:%d: names %s, which does not exist", path, number, name)
      end
    end
  end
end

for _, path in ipairs(files) do
  if path:find "%.[ch]$" or path:find "%.cuh?$" or path:find "%.inc$" or path:find "%.lua$" then
    check_comments(path)
  end
end

-- ---- public functions without a caller ----------------------------------------------------------

local called = {}
for _, path in ipairs(files) do
  if path:find "^bindings/" or path:find "^tests/" then
    for word in read(path):gmatch "gp_[%l%d_]+" do called[word] = true end
  end
end
for _, path in ipairs(lines_of "git ls-files 'runtime/gpipe/*.h'") do
  local text = read(path):gsub("/%*.-%*/", "")
  for name in text:gmatch "(gp_[%l%d_]+)%s*%(" do
    if not called[name] then complain("%s: no binding and no test calls %s", path, name) end
  end
end

judge.finish()
