-- lua/gpipe/profile/runs.lua - the runs that a profile is measured on, and the seconds that their
-- instructions take.
--
-- A copy of the model runs on one device, in two stages: the first layers, up to one that is
-- trained, need no gradient of their input; all others are the second stage, so images cross no
-- cut, where they would be copied into another order. The runtime times every instruction
-- (pipe:profile), and an instruction belongs to the layer that it was traced in.

local core = require "gpipe.core"
local object = require "gpipe.pipeline.object"
local pipeline = require "gpipe.pipeline"
local profile = require "gpipe.pipeline.profile"
local request = require "gpipe.profile.request"
local schedule = require "gpipe.schedule"

local runs = {}

-- ---- the schedule -------------------------------------------------------------------------------

local function balance_of(model)
  for i = 1, #model - 1 do
    for _, entry in ipairs(model[i]:parameters()) do
      if not entry.param:is_frozen() then return { i, #model - i } end
    end
  end
  return { #model }
end

-- One micro-batch through all stages on one device and back, with I and W apart or as a whole B.
local function one_device(stages, whole)
  local actions, placement = {}, {}
  local function add(op, stage) actions[#actions + 1] = { op = op, stage = stage, micro = 0 } end
  for s = 0, stages - 1 do
    placement[s] = 0
    add("F", s)
  end
  for s = stages - 1, 0, -1 do
    add(whole and "B" or "I", s)
    if not whole then add("W", s) end
  end
  return schedule.wrap("profile", { placement = placement, rows = { actions } }, 1)
end

-- ---- a run --------------------------------------------------------------------------------------

---@class gpipe.ProfileRun
---@field pipe gpipe.Pipeline
---@field wanted gpipe.ProfileRequest
local Run = {}
Run.__index = Run

-- A balance of the user's layers for a model that may have one more.
local function with_last(balance, count)
  local list, sum = table.move(balance, 1, #balance, 1, {}), 0
  for _, n in ipairs(list) do sum = sum + n end
  list[#list] = list[#list] + count - sum
  return list
end

--- Open a run.
---@param wanted gpipe.ProfileRequest
---@param device string|table
---@param checkpoint string
---@param o? {whole: boolean?, balance: integer[]?} whole: backward is one action B; else I and W
--- run apart. balance: of the user's layers
---@return gpipe.ProfileRun
function runs.open(wanted, device, checkpoint, o)
  local model, loss = request.own(wanted)
  local whole, balance = o and o.whole, o and o.balance
  balance = balance and with_last(balance, #model) or balance_of(model)
  local pipe = pipeline(model, {
    balance = balance, devices = { device }, schedule = one_device(#balance, whole),
    checkpoint = checkpoint, loss = loss, precision = wanted.precision, finite = "ignore",
  })
  object.inside(pipe).raw = true -- before there is a plan: no stage keeps what it may make again
  return setmetatable({ pipe = pipe, wanted = wanted }, Run)
end

--- Run a step that is not timed.
function Run:step() self.pipe:step(self.wanted.inputs, self.wanted.targets) end

local OPTIONS = { eager = false }

--- Run a step and return the time of each of its instructions.
---@return table[]
function Run:entries()
  local inner = object.inside(self.pipe)
  profile.begin(inner, OPTIONS)
  local _ <close> = setmetatable({}, { __close = function() profile.drop(inner) end })
  self:step()
  inner.core:profile_end()
  return inner.core:profile_entries(0)
end

--- Run a step whose instructions are not timed, and return the seconds of each action by its op and
--- stage; nil on a device that is not done with an action when the next one begins.
---@return table<string, number>?
function Run:actions()
  if self.pipe.devices[1].kind ~= "cpu" then return nil end
  self:step()
  local seconds = {}
  for _, e in ipairs(self.pipe:timeline()[1]) do
    local key = e.op .. e.stage
    seconds[key] = (seconds[key] or 0) + e.finish - e.begin
  end
  return seconds
end

--- By what the instructions of each action are to be multiplied to add up to the action of an
--- ordinary step: there rows pass several ops at a time, and there is time between instructions.
---@param entries table[]
---@param actions table<string, number>? of Run:actions
---@return table<string, number>
function Run.scales(entries, actions)
  local sums, scales = {}, {}
  for _, e in ipairs(actions and entries or {}) do
    local key = e.action and e.action .. e.stage
    if key then sums[key] = (sums[key] or 0) + e.seconds end
  end
  for key, sum in pairs(sums) do
    scales[key] = sum > 0 and actions[key] and actions[key] / sum or 1
  end
  return scales
end

--- The latency and the bandwidth of copies to the host's memory and back; nil for a device that
--- computes there.
---@return {latency: number, bandwidth: number}?
function Run:host_link() return object.inside(self.pipe).core:host_link(0) end

function Run:__close() self.pipe:close() end

-- ---- layers -------------------------------------------------------------------------------------

--- A function that returns the number of the layer in which an instruction was traced, by the label
--- "3.fc (Linear 4 -> 2)"; nil for what stands for a loss.
---@param rows table[] with the names of the layers
---@param loss integer|nil|false the layer that a user's loss counts for
---@return fun(label: string): integer?
function runs.finder(rows, loss)
  local numbers = {}
  for i, row in ipairs(rows) do numbers[row.name] = i end
  return function(label)
    local first = label:match "^[^.]*"
    local name = first:sub(1, (first:find(" (", 1, true) or #first + 1) - 1)
    return numbers[name] or loss or nil
  end
end

-- ---- devices ------------------------------------------------------------------------------------

--- The bytes that a device has free.
---@param device string|table
---@return integer
function runs.memory(device)
  local name = tostring(type(device) == "table" and device[1] or device)
  local number = name:match "^cuda:(%d+)"
  local gpu = number and (core.gpus(true) or {})[math.tointeger(number) + 1]
  return gpu and (gpu.free or gpu.memory) or core.machine().available
end

return runs
