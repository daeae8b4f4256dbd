-- scripts/check_ops.lua - every row of ops.def is complete: a text where it is a method, a
-- definition, a row of the test table.
--
-- The linker refuses an op without a definition; this also finds a definition without a row, and an
-- op that the conformance table (tests/spec/ops/table.lua) does not exercise, by a row of its own
-- or as part of another one's gradient. Run from the root of the checkout; prints each fault, exits
-- 1.

package.path = "./?.lua;" .. package.path

local core = require "gpipe.core"

local DEFINITIONS = "runtime/ops/ops.def"
local TABLE = "tests/spec/ops/table.lua"

local judge = require "scripts.judge"
local complain = judge.complain

-- ---- ops.def ---------------------------------------------------------------------------------

-- A method is documented for users, with an example.
local function check_contract(row)
  if row.method ~= (row.text ~= "") then
    complain("%s: op '%s' is %s a method but has %s text", DEFINITIONS, row.name,
      row.method and "" or "not",
      row.text == "" and "no" or "a")
  elseif row.method and not row.text:find("`[^`]*%f[%w]gp%.[^`]*`") then
    complain("%s: the text of '%s' has no `example`", DEFINITIONS, row.name)
  end
  if #row.outputs == 0 then complain("%s: op '%s' has no output", DEFINITIONS, row.name) end
end

local function list_ops()
  local names = {}
  for i, row in ipairs(core.contracts()) do
    names[i] = row.name
    check_contract(row)
  end
  return names
end

-- Collects the words of all kernel sources: a definition is written gp_def_exp in full, or exp in a
-- family's macro; one macro names its gradient itself (ops/elementwise/unary.h).
local function words_of_sources()
  local set = {}
  local pipe = assert(io.popen("find runtime/ops -name '*.c'"))
  for path in pipe:lines() do
    for line in io.lines(path) do
      for word in line:gmatch("[%w_]+") do set[word] = true end
      local sloped = line:match "^GP_SLOPE%(([%w_]+)"
      if sloped then set[sloped .. "_dx"] = true end
    end
  end
  pipe:close()
  return set
end

-- ---- the test table --------------------------------------------------------------------------

-- Checks that a row has what it needs to test anything.
local function check_row(row, known, own)
  local name = tostring(row.op)
  if not known[name] then complain("%s: row '%s' is no op of %s", TABLE, name, DEFINITIONS) end
  if own[name] then complain("%s: op '%s' has two rows", TABLE, name) end
  if type(row.gradient) ~= "boolean" then
    complain("%s: row '%s' does not say whether the op has a gradient", TABLE, name)
  end
  local cases, also = #(row.cases or {}), #(row.also or {})
  if cases + also == 0 then complain("%s: row '%s' has no cases", TABLE, name) end
  if cases > 0 and not (row.call and row.reference and row.tolerance and row.refuses) then
    complain("%s: row '%s' lacks call, reference, tolerance or refuses", TABLE, name)
  end
  own[name] = true
end

-- A gradient op is tested by the row that covers it; what a row covers must be such an op.
local function check_covers(row, known, covered)
  for _, name in ipairs(row.covers or {}) do
    if not known[name] then
      complain("%s: row '%s' covers '%s', which is no op of %s", TABLE, row.op, name, DEFINITIONS)
    elseif not row.gradient then
      complain("%s: row '%s' covers '%s' but has no gradient", TABLE, row.op, name)
    end
    covered[name] = true
  end
end

-- Sets of the names with a row, and of those that another row covers.
local function read_table(known)
  local own, covered = {}, {}
  for _, row in ipairs(require((TABLE:gsub("%.lua$", ""):gsub("/", ".")))) do
    check_row(row, known, own)
    check_covers(row, known, covered)
  end
  return own, covered
end

-- ---- both ------------------------------------------------------------------------------------

local names, known = list_ops(), {}
for _, name in ipairs(names) do known[name] = true end
local sources = words_of_sources()
local own, covered = read_table(known)
for _, name in ipairs(names) do
  if not (sources["gp_def_" .. name] or sources[name]) then
    complain("%s: op '%s' is defined in no file of runtime/ops", DEFINITIONS, name)
  end
  if own[name] and covered[name] then
    complain("%s: op '%s' has a row of its own and is covered by another", TABLE, name)
  elseif not own[name] and not covered[name] then
    complain("%s: op '%s' has no row in %s", DEFINITIONS, name, TABLE)
  end
end
judge.finish()
