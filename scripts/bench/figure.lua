-- scripts/bench/figure.lua - what the benchmarks share: medians, taking turns, lines of figures.
--
-- The machine may be shared, so contenders that are compared are never timed alone: they take
-- turns, each turn gives one ratio, and the median of the ratios counts.

local clock = require("gpipe.core").seconds

local figure = {}

-- ---- numbers ---------------------------------------------------------------------------------

--- The middle of a list, or the mean of the two in the middle.
---@param list number[]
---@return number
function figure.median(list)
  local sorted = table.move(list, 1, #list, 1, {})
  table.sort(sorted)
  local n = #sorted
  return (sorted[(n + 1) // 2] + sorted[n // 2 + 1]) / 2
end

--- Quotients a[i] / b[i].
---@param a number[]
---@param b number[]
---@return number[]
function figure.ratios(a, b)
  local list = {}
  for i = 1, #a do list[i] = a[i] / b[i] end
  return list
end

--- Seconds that one call takes.
---@param work fun()
---@return number
function figure.seconds(work)
  local begin = clock()
  work()
  return clock() - begin
end

--- Let contenders take turns.
---@param rounds integer
---@param contenders table<string, fun(): number?> each returns the figure of its turn, or nothing to be timed
---@param order string[] names of the contenders
---@return table<string, number[]> figures by name, one per round
function figure.alternate(rounds, contenders, order)
  local figures = {}
  for _, name in ipairs(order) do figures[name] = {} end
  for round = 1, rounds do
    for _, name in ipairs(order) do
      local value
      local seconds = figure.seconds(function() value = contenders[name]() end)
      figures[name][round] = value or seconds
    end
  end
  return figures
end

-- ---- lines -----------------------------------------------------------------------------------

-- Four digits: no timing is more exact.
local function text_of(value)
  if value ~= value or math.abs(value) >= 1000 then return ("%.0f"):format(value) end
  return (("%.4g"):format(value))
end

--- Print one figure.
--- ```lua
--- figure.print("startup.time", 12.3, "ms", "<=", 20)   -- startup.time 12.3 ms must <= 20: met
--- figure.print("gemm.peak", 105, "GF/s")               -- gemm.peak 105 GF/s
--- ```
---@param name string
---@param value number
---@param unit string
---@param relation? ">="|"<="
---@param bound? number
---@return boolean met true where there is no bound
function figure.print(name, value, unit, relation, bound)
  local line = ("%s %s %s"):format(name, text_of(value), unit)
  local met = true
  if relation then
    met = relation == ">=" and value >= bound or relation == "<=" and value <= bound
    line = ("%s must %s %s: %s"):format(line, relation, text_of(bound), met and "met" or "short")
  end
  print(line)
  io.stdout:flush()
  return met
end

--- A printer of errors that must stay within their bounds: speed means nothing beyond them.
--- ```lua
--- local exact = figure.exact()
--- exact.print("x", 1e-7, "relative error", 1e-5)
--- exact.finish()   -- raises with the names of those that were larger
--- ```
function figure.exact()
  local wrong = {}
  return {
    print = function(name, value, unit, bound)
      if not figure.print(name, value, unit, "<=", bound) then wrong[#wrong + 1] = name end
    end,
    finish = function()
      if #wrong > 0 then error("too far off: " .. table.concat(wrong, ", "), 0) end
    end,
  }
end

--- Say that a figure cannot be measured here.
---@param name string
---@param why string
function figure.skip(name, why)
  print(("%s skipped: %s"):format(name, why))
  io.stdout:flush()
end

--- Say that a figure is missing because its measurement broke, which is no reason to skip it.
---@param name string
---@param message any what was raised
function figure.fail(name, message)
  print(("%s broke: %s"):format(name, (tostring(message):gsub("%s+", " "))))
  io.stdout:flush()
end

-- ---- other programs --------------------------------------------------------------------------

--- The path of the gpipe-lua that runs this script.
---@return string
function figure.interpreter()
  local i = 0
  while arg[i - 1] do i = i - 1 end
  return arg[i]
end

--- Quote a word for the shell.
---@param word string
---@return string
function figure.quote(word) return "'" .. word:gsub("'", "'\\''") .. "'" end

--- What a command prints.
---@param command string
---@return string? output nil where it failed
---@return string? text what it printed then
function figure.capture(command)
  local pipe = assert(io.popen(command))
  local text = pipe:read("a")
  if pipe:close() then return text end
  return nil, text
end

return figure
