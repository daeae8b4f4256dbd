-- lua/gpipe/ranks/pipeline.lua - a pipeline whose stages lie with several ranks: what the ranks
-- must agree on.

local class = require "gpipe.nn.class"
local core = require "gpipe.core"
local create = require "gpipe.tensor.create"
local errors = require "gpipe.errors"
local nn = require "gpipe.nn"
local random = require "gpipe.random"
local ranks = require "gpipe.ranks"
local share = require "gpipe.ranks.share"

local pipeline = {}

local WHO = "gp.pipeline"

local function list_text(list)
  local words = {}
  for i, value in ipairs(list) do words[i] = tostring(value) end
  return table.concat(words, " ")
end

local function device_text(devices)
  local words = {}
  for i, device in ipairs(devices) do
    local cap = device.cap and (" with %d bytes"):format(device.cap) or ""
    words[i] = ("%s x %d%s"):format(device.name, device.threads, cap)
  end
  return table.concat(words, " ")
end

local function loss_text(loss)
  return loss == nil and "none" or class.of(loss) and nn.describe(loss) or "a function"
end

local function option_text(value)
  if type(value) == "table" then
    return value.name and tostring(value.name) or #value > 0 and list_text(value) or "a table"
  end
  return type(value) == "function" and "a function" or tostring(value)
end

local OPTIONS = {
  "chunks", "replicas", "sum_group", "checkpoint", "precision", "finite", "fuse", "watchdog",
  "deferred_batch_norm", "sync_batch_norm", "barrier",
}

-- One line for each fact, so that the first one that differs can be shown.
local function describe(model, opts, made)
  local lines = {
    "version " .. core.version, "seed " .. tostring(opts.seed or random.current()),
    "balance " .. list_text(made.balance), "devices " .. device_text(made.devices),
    "schedule " .. tostring(made.schedule.name), "loss " .. loss_text(opts.loss),
  }
  for _, name in ipairs(OPTIONS) do lines[#lines + 1] = name .. " " .. option_text(opts[name]) end
  for i = 1, #model do lines[#lines + 1] = ("layer %d %s"):format(i, nn.describe(model[i])) end
  for _, list in ipairs { model:parameters(), model:buffers() } do
    for _, entry in ipairs(list) do
      lines[#lines + 1] = ("parameter %s %s %s%s"):format(entry.name, entry.param.dtype,
        list_text(entry.param.shape), entry.param:is_frozen() and " frozen" or "")
    end
  end
  return table.concat(lines, "\n")
end

--- Compare what the ranks want to make, before anything is made. Returns whether there are several.
---@param model nn.Sequential
---@param opts table
---@param made {balance: integer[], devices: table[], schedule: gpipe.Schedule}
---@return boolean
function pipeline.agree(model, opts, made)
  if ranks.ranks() == 1 then return false end
  ranks.agree(WHO, describe(model, opts, made))
  return true
end

--- The most actions of all devices together for which each rank makes the whole plan
--- (GPIPE_WHOLE_PLAN). Larger plans are made by rank: in full for its own devices, in outline for
--- the others (runtime/plan/outline.c). Whole plans can be looked at on any rank.
---@return integer
function pipeline.most_whole()
  local text = os.getenv "GPIPE_WHOLE_PLAN"
  if not text or text == "" then return 1000000 end
  local given = math.tointeger(tonumber(text))
  if given and given >= 0 and given < 1 << 31 then return given end
  errors.raise("%s: GPIPE_WHOLE_PLAN is '%s', expected a number of actions from 0 to 2147483647",
    WHO, text)
end

--- The devices as the runtime takes them: under their own names, with their ranks.
---@param devices table[]
---@return table[]
function pipeline.for_runtime(devices)
  local list = {}
  for i, device in ipairs(devices) do
    list[i] = {
      name = device.device, threads = device.threads, rank = device.rank,
      host_bandwidth = device.host_bandwidth, host_latency = device.host_latency,
      host_memory = device.host_memory,
    }
  end
  return list
end

-- ---- values that an earlier pipeline left with other ranks ------------------------------------

-- The ranks that drive a stage, as a set.
local function ranks_of(stage, made, devices)
  local copies, set = #made.device_list // made.stages, {}
  for c = 1, copies do set[devices[made.device_list[stage * copies + c] + 1].rank] = true end
  return set
end

-- Whether some rank of a stage has no value: all but the holder have none.
local function is_missing(holder, wanted)
  for rank in pairs(wanted) do
    if rank ~= holder then return true end
  end
  return false
end

--- Bring values that an earlier pipeline has left with a rank to those that drive their stages now.
---@param of {params: gpipe.Tensor[], param_layer: integer[], stage_of: integer[]}
---@param made gpipe.Schedule
---@param devices table[]
function pipeline.bring(of, made, devices)
  if ranks.ranks() == 1 then return end
  for i, box in ipairs(of.params) do
    local holder = core.param_holder(box)
    local wanted = holder and ranks_of(of.stage_of[of.param_layer[i] + 1], made, devices)
    if holder and is_missing(holder, wanted) then
      local text = share.to(holder, wanted, WHO, function()
        return box:value():contiguous():bytes()
      end)
      if core.param_away(box) and wanted[ranks.rank()] then
        core.param_bring(box, create.frombytes(text, box.shape, box.dtype))
      end
    end
  end
end

return pipeline
