-- lua/gpipe/plan/candidates.lua - which schedules, numbers of devices and of micro-batches a plan
-- tries, and how micro-batches live in each: counted from the verified schedule, not by formula.

local columns = require "gpipe.draw.columns"
local known = require "gpipe.schedule.known"
local moments = require "gpipe.plan.moments"
local schedule = require "gpipe.schedule"
local stage_cost = require "gpipe.plan.stage_cost"

local candidates = {}

-- Schedules that train as one device does, tried unless the option says which. Those found by a
-- search of their own take seconds for hundreds of devices, so they are left out there.
local DEFAULT = {
  "1f1b", "gpipe", { "interleaved_1f1b", stages_per_device = 2 },
  { "interleaved_1f1b", stages_per_device = 4 }, "looped_bfs", "zb_h1", "zb_h2", "zbv",
  "interleaved_zero_bubble", "v_half", "v_min",
}
local SEARCHED = { v_half = true, v_min = true }
local MOST_CELLS = 1024 -- devices x micro-batches for those

---@class gpipe.PlanShape a schedule for a number of devices and micro-batches
---@field label string
---@field wanted string|table what option `schedule` of gp.pipeline takes
---@field schedule gpipe.Schedule
---@field devices integer those of all replicas
---@field chunks integer those of all replicas
---@field replicas integer
---@field live table<integer, integer> stage (from 0) -> micro-batches between F and B at once
---@field holders integer[][] element d + 1: the stages (from 0) that device d holds, once per copy

-- ---- numbers ------------------------------------------------------------------------------------

local function add(set, list, n, most)
  if n >= 1 and n <= most and not set[n] then
    set[n] = true
    list[#list + 1] = n
  end
end

--- The numbers of micro-batches to try: powers of two around the number of devices, and what the
--- option says.
---@param given? integer|integer[]
---@param devices integer
---@param most integer into how many micro-batches the rows can be cut
---@return integer[]
function candidates.chunks(given, devices, most)
  if type(given) == "table" then return given end
  if given then return { given } end
  local list, set = {}, {}
  add(set, list, devices == 1 and 1 or math.max(1, devices // 2), most)
  for _, times in ipairs { 1, 2, 4, 8 } do add(set, list, times * devices, most) end
  add(set, list, most, math.max(most <= 64 * devices and most or 1, 1))
  if #list == 0 then add(set, list, most, most) end
  table.sort(list)
  return list
end

local FEW = 16 -- devices, up to which every number is tried

--- The numbers of devices to try: as many as there are layers for, and fewer where the work may be
--- too small for these; then the numbers between, which are tried where they may be better than
--- what was found with the first: all up to 16, then 24, 32, 48, 64, 96, ...
---@param most integer
---@param layers integer
---@param beyond boolean some schedule may have a use for more devices than there are layers
---@return integer[] first
---@return integer[] between
function candidates.devices(most, layers, beyond)
  local first, between, set, useful = {}, {}, {}, math.min(most, layers)
  local function halve(p)
    for _ = 1, p > FEW and 2 or 4 do
      add(set, first, p, most)
      p = p // 2
    end
  end
  if beyond then halve(most) end
  halve(useful)
  for p = math.min(useful, FEW), 1, -1 do add(set, between, p, useful) end
  local p = FEW + FEW // 2
  while p <= useful do
    add(set, between, p, useful)
    add(set, between, p // 3 * 4, useful)
    p = 2 * p
  end
  return first, between
end

-- ---- schedules ----------------------------------------------------------------------------------

--- "interleaved_1f1b stages_per_device=2"
---@param wanted string|table
function candidates.label(wanted)
  if schedule.is(wanted) then return wanted.name end
  if type(wanted) == "string" then return wanted end
  local words = {}
  for key, value in pairs(wanted) do
    if key ~= 1 then words[#words + 1] = ("%s=%s"):format(key, value) end
  end
  table.sort(words)
  table.insert(words, 1, wanted[1])
  return table.concat(words, " ")
end

local function defaults(devices) return devices == 1 and { "1f1b", "gpipe" } or DEFAULT end

--- A schedule for so many replicas, as candidates name it; gp.pipeline takes the two apart.
---@param wanted string|table
---@param replicas integer
---@return string|table
function candidates.replicated(wanted, replicas)
  if replicas == 1 then return wanted end
  local one = { replicas = replicas }
  for key, value in pairs(type(wanted) == "table" and wanted or { wanted }) do one[key] = value end
  return one
end

--- The schedule and the number of replicas that gp.pipeline takes for a candidate.
---@param wanted string|table
---@return string|table
---@return integer
function candidates.apart(wanted)
  if type(wanted) ~= "table" or schedule.is(wanted) or not wanted.replicas then return wanted, 1 end
  local one = {}
  for key, value in pairs(wanted) do
    if key ~= "replicas" then one[key] = value end
  end
  return next(one, next(one)) and one or one[1], wanted.replicas
end

--- The schedules to try for a number of devices; with `replicated` also those of two, four, ...
--- replicas that share them.
---@param given? table
---@param devices integer
---@param replicated? boolean
---@return (string|table)[]
function candidates.schedules(given, devices, replicated)
  local all = table.move(given or defaults(devices), 1, #(given or defaults(devices)), 1, {})
  local replicas = 2
  while replicated and replicas <= devices do
    if devices % replicas == 0 then
      for _, wanted in ipairs(given or defaults(devices // replicas)) do
        if not schedule.is(wanted) and select(2, candidates.apart(wanted)) == 1 then
          all[#all + 1] = candidates.replicated(wanted, replicas)
        end
      end
    end
    replicas = 2 * replicas
  end
  return all
end

--- The micro-batches of each replica, where so many are tried in all; an option says those of each.
--- nil where they are no block of the tree of sums.
---@param wanted string|table
---@param m integer
---@param given boolean
---@return integer?
function candidates.each(wanted, m, given)
  local _, replicas = candidates.apart(wanted)
  if replicas == 1 then return m end
  local each = given and m or m // replicas
  return each > 0 and each & (each - 1) == 0 and each or nil
end

-- The stages of each device, and once more for each copy.
local function holders_of(made)
  local holders = {}
  for d = 1, made.devices do holders[d] = {} end
  for stage = 0, made.stages - 1 do
    for copy = 1, made.copies do
      local list = holders[made.device_list[stage * made.copies + copy] + 1]
      list[#list + 1] = stage
    end
  end
  return holders
end

local function reason_of(message)
  if type(message) ~= "string" then error(message, 0) end -- an interrupt
  return (message:gsub("\n.*", ""):gsub("^[^%s:]+:%d+: ", ""):gsub("^gp%.schedule%.build: ", ""))
end

--- Whether a schedule is not tried with so many devices and micro-batches, unless the script names
--- it.
function candidates.is_left_out(wanted, devices, chunks, given)
  return not given and SEARCHED[wanted] and devices * chunks > MOST_CELLS or false
end

--- Build a schedule; nil and the reason where these numbers do not allow it.
---@param wanted string|table
---@param devices integer
---@param chunks integer
---@return gpipe.PlanShape?
---@return string? why
function candidates.shape(wanted, devices, chunks)
  local good, made = pcall(function()
    local built, report = known.verified(wanted, devices, chunks)
    return built or error(tostring(report), 0)
  end)
  if not good then return nil, reason_of(made) end
  if made.devices ~= devices then
    return nil, ("it has %d devices, not %d"):format(made.devices, devices)
  end
  local peaks = made:peak_live()
  return {
    label = candidates.label(wanted), wanted = wanted, schedule = made, devices = made.devices,
    chunks = made.chunks, peaks = peaks, live = peaks.stages, holders = holders_of(made),
    versions = made:versions(), replicas = made.replicas,
  }
end

-- ---- policies -----------------------------------------------------------------------------------

-- The share of its micro-batches that each device makes again.
local function shares_of(lowered, shape)
  local shares = {}
  for d, list in ipairs(shape.holders) do
    local again = lowered.source:count(d - 1, "R")
    shares[d] = again / (#list * shape.chunks / shape.schedule.copies)
  end
  return shares
end

---@class gpipe.Lowered
---@field carried table<integer, integer> stage -> micro-batches at once between I and W
---@field moments table<integer, integer[][]> per device (from 1): what its stages hold at the same
--- time, as schedule:moments has it
---@field schedule gpipe.Schedule with R where it runs
---@field held table<integer, integer> stage (from 0) -> saved micro-batches at once
---@field share number[] element s + 1: of the micro-batches of stage s that run R

--- The shape with recomputation: made once for each word of option `checkpoint`.
---@param shape gpipe.PlanShape
---@param policy string
---@return gpipe.Lowered
function candidates.lowered(shape, policy)
  local word = stage_cost.policies[policy].lowered
  local key = stage_cost.policies[policy].offloads and "away" or word
  shape.lowered = shape.lowered or {}
  local made = shape.lowered[key]
  if made then return made end
  local lowered = shape.schedule:lower { checkpoint = word, comms = false, update = "none" }
  local held = lowered.checked == shape.schedule.checked and shape.peaks or lowered:peak_live()
  local carried = lowered:peak_carried()
  carried.stages[0] = 0 -- its I and W run as one B, because no gradient leaves it
  made = { schedule = lowered, held = held.stages, carried = carried.stages, share = {},
    moments = moments.of_devices(lowered, shape, stage_cost.policies[policy].offloads) }
  local shares = word ~= "never" and shares_of(lowered, shape)
  for d, list in ipairs(shape.holders) do
    for _, stage in ipairs(list) do made.share[stage + 1] = shares and shares[d] or 0 end
  end
  shape.lowered[key] = made
  return made
end

--- The mean of the idle shares of a simulation's devices.
function candidates.bubble(simulation) return columns.mean(simulation.bubble) end

return candidates
