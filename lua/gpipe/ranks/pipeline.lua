-- lua/gpipe/ranks/pipeline.lua - a pipeline whose stages lie with several ranks: what the ranks
-- must agree on.

local core = require "gpipe.core"
local nn = require "gpipe.nn"
local random = require "gpipe.random"
local ranks = require "gpipe.ranks"

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

local function option_text(value)
  if type(value) == "table" then
    return value.name and tostring(value.name) or #value > 0 and list_text(value) or "a table"
  end
  return type(value) == "function" and "a function" or tostring(value)
end

local OPTIONS = {
  "chunks", "replicas", "sum_group", "checkpoint", "precision", "finite", "fuse", "watchdog",
  "deferred_batch_norm", "sync_batch_norm",
}

-- One line for each fact, so that the first one that differs can be shown.
local function describe(model, opts, made)
  local lines = {
    "version " .. core.version, "seed " .. tostring(opts.seed or random.current()),
    "balance " .. list_text(made.balance), "devices " .. device_text(made.devices),
    "schedule " .. tostring(made.schedule.name), "loss " .. (opts.loss and "given" or "none"),
  }
  for _, name in ipairs(OPTIONS) do lines[#lines + 1] = name .. " " .. option_text(opts[name]) end
  for i = 1, #model do lines[#lines + 1] = ("layer %d %s"):format(i, nn.describe(model[i])) end
  for _, list in ipairs { model:parameters(), model:buffers() } do
    for _, entry in ipairs(list) do
      lines[#lines + 1] = ("parameter %s %s %s"):format(entry.name, entry.param.dtype,
        list_text(entry.param.shape))
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

--- The devices as the runtime takes them: under their own names, with their ranks.
---@param devices table[]
---@return table[]
function pipeline.for_runtime(devices)
  local list = {}
  for i, device in ipairs(devices) do
    list[i] = { name = device.device, threads = device.threads, rank = device.rank }
  end
  return list
end

return pipeline
