-- scripts/check_levels.lua - every #include of the C sources respects the levels of DESIGN 3.
--
-- A folder of runtime/ includes from its own level or a lower one; two folders of one level do not
-- include each other. Bindings include gpipe.h, Lua and their own headers, nothing else. The
-- runtime includes single headers of runtime/gpipe/, never gpipe.h. Only bindings include Lua's
-- headers. Run from the root of the checkout; prints each fault, exits 1.

package.path = "./?.lua;" .. package.path
local judge = require "scripts.judge"

local levels = { base = 0, ranks = 1, schedule = 2, io = 2, linalg = 2, device = 2, ops = 3,
  optim = 3, graph = 4, plan = 5, engine = 6 }

-- A public header, runtime/gpipe/<subject>.h, has the level of what it is about.
local subjects = {
  status = "base", version = "base", tensor = "base", random = "base", process = "base", gather = "base",
  ranks = "ranks", linalg = "linalg", data = "io", items = "io", tokenizer = "io", corpus = "io", archive = "io",
  records = "io", serve = "io", checkpoint = "io", folder = "io", device = "device", host = "device",
  update = "device", op = "device",
  attrs = "device", contract = "device", param = "graph", trace = "graph",
  history = "graph",
  schedule = "schedule", simulation = "schedule", plan = "plan",
  pipeline = "plan", run = "engine", profile = "engine", optimizer = "engine",
}

-- What is included from outside the project.
local lua_headers = { ["lua.h"] = true, ["lauxlib.h"] = true, ["lualib.h"] = true,
  ["luaconf.h"] = true }

local suffixes = { "h", "c", "inc", "cu", "cuh" }

local function list_files()
  local pattern = "-name '*." .. table.concat(suffixes, "' -o -name '*.") .. "'"
  return judge.lines_of("find runtime bindings tests/c " .. pattern .. " | sort")
end

local function exists(path)
  local file = io.open(path)
  return file and file:close()
end

-- Removes "folder/..", so that an include of "../io/text/json.h" counts as one of io.
local function normalise(path)
  local count
  repeat path, count = path:gsub("[^/]+/%.%./", "", 1) until count == 0
  return path
end

-- Returns the path in the checkout that `path` includes as `name`, in quotes. nil: the file is not
-- ours, or the build makes it (the rows of ops.def are read on every level).
local function resolve(path, name)
  local beside = path:match("^(.*)/[^/]*$") .. "/" .. name
  for _, candidate in ipairs { beside, "runtime/" .. name, "bindings/" .. name,
    "tests/c/" .. name } do
    if exists(candidate) then return normalise(candidate) end
  end
end

local function folder_of(path)
  local subject = path:match("^runtime/gpipe/(%w+)%.h$")
  if subject then return subjects[subject] or path end
  return path:match("^runtime/(%w+)/") or path:match("^(%w+)/")
end

-- Why a file of runtime/`from` may not include runtime/`to`, or nil.
local function level_fault(from, to)
  if from == to then return nil end
  if not levels[from] then return ("folder runtime/%s has no level"):format(from) end
  if not levels[to] then return ("folder runtime/%s has no level"):format(to) end
  if levels[from] > levels[to] then return nil end
  return ("level %d (%s) must not include level %d (%s)"):format(levels[from], from, levels[to], to)
end

-- gpipe.h includes the whole public interface and nothing else; bindings include it.
local function is_umbrella(path)
  return path == "runtime/gpipe.h"
end

-- The core and a plugin share one thing: the table of kernels of ops.
local function is_plugin_face(path, target)
  return path == "runtime/device/plugin.h" and target == "runtime/ops/op.h"
end

local function fault(path, name)
  local from = folder_of(path)
  if lua_headers[name] then
    return from ~= "bindings" and "only bindings/ may include Lua's headers" or nil
  end
  local target = resolve(path, name)
  if not target or from == "tests" or is_plugin_face(path, target) then
    return nil
  end
  if is_umbrella(path) then return nil end
  if is_umbrella(target) then
    return from ~= "bindings" and "the runtime includes the subject's own header of gpipe/" or nil
  end
  local to = folder_of(target)
  if from == "bindings" or to == "bindings" then
    return from ~= to and "bindings/ and runtime/ meet in gpipe.h only" or nil
  end
  return level_fault(from, to)
end

local function check_file(path)
  local number = 0
  for line in io.lines(path) do
    number = number + 1
    local name = line:match('^%s*#%s*include%s*["<]([^">]+)[">]')
    local reason = name and fault(path, name)
    if reason then judge.complain("%s:%d: includes %s: %s", path, number, name, reason) end
  end
end

for _, path in ipairs(list_files()) do check_file(path) end
judge.finish()
