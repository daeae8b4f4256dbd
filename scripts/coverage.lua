-- scripts/coverage.lua - which lines of runtime/ and bindings/ the tests of a build have run.
--
-- Usage: gpipe-lua scripts/coverage.lua BUILD [FILE]. BUILD was compiled with --coverage and has
-- run its tests (scripts/test --coverage). Prints lines per folder and says which folder is below
-- LEAST; the exit code is then 1. FILE receives the lines that no test has run, as
-- path:first-last: text of the first. gcov reads what gcc left; a line of a header or a template
-- counts once, however many sources include it. Kernels for GPUs count as compiled for the host;
-- what calls NVIDIA's libraries is no part of such a build (docs/coverage.md).

local LEAST = 90 -- % of the lines of every folder

local build, list = arg[1] or "build-coverage", arg[2]
local TARGETS = { "gpipe_runtime", "gpipe_bindings", "gpipe-lua", "gpipe_cuda_host" }

-- seen[path][line] = whether any object has run it; text[path][line] = what stands there
local seen, text = {}, {}

-- The path in the checkout of a source that is ours; ccache makes paths relative to the build.
local root = os.getenv "PWD" .. "/"
local function ours(source)
  local path = source:sub(1, #root) == root and source:sub(#root + 1) or source:gsub("^%.%./", "")
  return path:find "^runtime/" and path or path:find "^bindings/" and path or nil
end

-- Reads gcov's text: "count:line:source", with count "-" for no code and "#####" for code that
-- never ran.
local function read_source(pipe)
  local path
  for said in pipe:lines() do
    local count, line, rest = said:match "^%s*([^:%s]+):%s*(%d+):(.*)$"
    if line == "0" then
      local source = rest:match "^Source:(.*)$"
      if source then path = ours(source) end
      if path then seen[path], text[path] = seen[path] or {}, text[path] or {} end
    elseif path and count and count ~= "-" then
      local number, ran = math.tointeger(tonumber(line)), not count:find "^[#=]"
      seen[path][number] = seen[path][number] or ran
      text[path][number] = rest
    end
  end
  pipe:close()
end

local function exists(path)
  local file = io.open(path)
  return file ~= nil and file:close()
end

-- Objects of sources that were removed may remain in the folder; they are skipped.
local function is_current(object)
  local source = object:match "%.dir/(.*)%.gcno$"
  return exists(source) or exists(build .. "/" .. source)
end

for _, target in ipairs(TARGETS) do
  local find = "find '%s/CMakeFiles/%s.dir' -name '*.gcno' 2>/dev/null"
  local objects = assert(io.popen(find:format(build, target)))
  for object in objects:lines() do
    if is_current(object) then
      read_source(assert(io.popen(("cd '%s' && gcov -t '%s' 2>/dev/null"):format(build,
        object:sub(#build + 2)))))
    end
  end
  objects:close()
end

-- ---- what no test has run --------------------------------------------------------------------

local function sorted_keys(t)
  local keys = {}
  for key in pairs(t) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end

local out = list and assert(io.open(list, "w"))
local function note(path, first, last)
  if not out then return end
  out:write(("%s:%d-%d: %s\n"):format(path, first, last, text[path][first]:match "^%s*(.-)%s*$"))
end

-- Counts the lines and those that ran; notes runs of lines that did not, comments between them
-- included.
local function count(path)
  local lines, ran, first, last = 0, 0, nil, nil
  for _, line in ipairs(sorted_keys(seen[path])) do
    lines = lines + 1
    if seen[path][line] then
      ran = ran + 1
      if first then note(path, first, last) end
      first = nil
    else
      first, last = first or line, line
    end
  end
  if first then note(path, first, last) end
  return lines, ran
end

-- ---- per folder -----------------------------------------------------------------------------

local folders = {}
local function add(folder, lines, ran)
  local sum = folders[folder] or { 0, 0 }
  folders[folder] = { sum[1] + lines, sum[2] + ran }
end

for _, path in ipairs(sorted_keys(seen)) do
  local lines, ran = count(path)
  if lines > 0 then
    add(path:match "^(.*)/", lines, ran)
    add("all of " .. path:match "^%w+", lines, ran)
  end
end
if out then out:close() end
assert(next(folders), "coverage: no line was found, expected a build with --coverage and gcov")
local below = 0
for _, folder in ipairs(sorted_keys(folders)) do
  local lines, ran = table.unpack(folders[folder])
  local few = 100 * ran < LEAST * lines
  below = below + (few and 1 or 0)
  print(("%-32s %6d of %6d lines  %5.1f %%%s"):format(folder, ran, lines, 100 * ran / lines,
    few and ("  below %d %%"):format(LEAST) or ""))
end
print(("%d of %d folders are below %d %%"):format(below, #sorted_keys(folders), LEAST))
os.exit(below == 0)
