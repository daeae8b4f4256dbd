-- scripts/check_ops.lua - every row of ops.def is complete: a definition, a test.
--
-- The linker refuses an op without a definition; this also finds a definition without a row, and an op that
-- the test table does not exercise. Run from the root of the checkout; prints each fault, exits 1.

local table_path = "tests/spec/ops_table.lua"

local function read(path)
  local file = io.open(path)
  if not file then return nil end
  local text = file:read("a")
  file:close()
  return text
end

local function read_all(command)
  local pipe = assert(io.popen(command))
  local texts = {}
  for path in pipe:lines() do texts[#texts + 1] = read(path) end
  pipe:close()
  return table.concat(texts, "\n")
end

local function list_ops()
  local names = {}
  for line in io.lines("runtime/ops/ops.def") do
    names[#names + 1] = line:match("^GP_OP%(([%w_]+)%)")
  end
  return names
end

-- Names as words: "tanh" is not found in "tanh_dx".
local function words(text)
  local set = {}
  for word in text:gmatch("[%w_]+") do set[word] = true end
  return set
end

local faults = 0
local function complain(...)
  print(string.format(...))
  faults = faults + 1
end

local source = words(read_all("find runtime/ops -name '*.c'"))
-- Rows live beside those of their family, in files that the table requires.
local tests = read(table_path) and read_all("find tests/spec/ops_table* -name '*.lua'")
local tested = words(tests or "")
for _, name in ipairs(list_ops()) do
  -- gp_def_exp in full, or GP_UNARY(exp, ...) of a family's macro
  if not (source["gp_def_" .. name] or source[name]) then
    complain("runtime/ops/ops.def: op '%s' is defined in no file of runtime/ops", name)
  end
  if tests and not tested[name] then
    complain("runtime/ops/ops.def: op '%s' has no row in %s", name, table_path)
  end
end
os.exit(faults == 0)
