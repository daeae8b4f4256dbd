-- lua/gpipe/pipeline/advice.lua - hints about a pipeline that is correct but probably not intended:
-- devices without a stage, devices that will mostly wait, and running statistics of micro-batches.
--
-- Hints go to standard error, each text once: a sweep makes a thousand pipelines. All ranks of a
-- job would say the same, so rank 0 does.

local counted = require "gpipe.counted"
local remark = require "gpipe.ranks.remark"
local running = require "gpipe.nn.layer.norm.running"

local advice = {}

local said = {}

local function say(format, ...)
  local text = format:format(...)
  if said[text] then return end
  said[text] = true
  remark("%s", text)
end

-- ---- devices without a stage -----------------------------------------------------------------

local function name_of(entry) return type(entry) == "table" and entry[1] or entry end

--- Say which of the named devices get no stage.
---@param named table? option `devices`, or the devices of the command line
---@param made gpipe.Schedule
function advice.unused_devices(named, made)
  if not named or #named <= made.devices then return end
  local used, names = {}, {}
  for i = 1, made.devices do used[tostring(name_of(named[i]))] = true end
  for i = made.devices + 1, #named do
    local name = tostring(name_of(named[i]))
    names[#names + 1] = used[name] and ("entry %d (%s)"):format(i, name) or name
  end
  local per = made.stages * made.copies // made.devices
  say("%s %s not used: schedule '%s' places %s on %s, %d on each", table.concat(names, ", "),
    #names == 1 and "is" or "are", made.name, counted(made.stages, "stage"),
    counted(made.devices, "device"), per)
end

-- ---- GPUs of several ranks ---------------------------------------------------------------------

--- Say that ranks drive the same GPU: each is a process of its own, so they take turns.
---@param list table[] devices
function advice.shared_gpus(list)
  local names, order = {}, {} -- by place
  for _, device in ipairs(list) do
    if (device.drivers or 0) > 1 then
      if not names[device.place] then
        names[device.place], order[#order + 1] = {}, device.place
      end
      table.insert(names[device.place], device.name)
    end
  end
  for _, place in ipairs(order) do
    say("devices %s are one GPU, which several processes drive: they share its memory and take "
      .. "turns", table.concat(names[place], ", "))
  end
end

-- ---- idle devices ----------------------------------------------------------------------------

local HUGE = 0.8         -- share of idle time from which a hint is given
-- actions up to which a schedule is simulated for this; for a larger one the formula is enough
local SIMULATED = 4096
local MICROS = 4         -- micro-batches per device with which about a fifth is idle

-- The idle share of p devices with m micro-batches and v stages on each, under GPipe and 1F1B.
local function formula(p, m, v) return (p - 1) / (m * v + p - 1) end

local function bubble_of(made)
  local v = made.stages / made.devices
  if made.stages * made.chunks > SIMULATED then return formula(made.devices, made.chunks, v) end
  local sum = 0
  for _, share in ipairs(made:simulate { F = 1, B = 2 }.bubble) do sum = sum + share end
  return sum / made.devices
end

--- Say that the devices will mostly wait, and what helps.
---@param made gpipe.Schedule
function advice.idle_devices(made)
  if made.devices < 2 or made.batch > 0 then return end
  local bubble = bubble_of(made)
  if bubble < HUGE then return end
  local better = MICROS * made.devices
  local helps = ("chunks = %d would leave about %.0f %%"):format(better,
    100 * formula(made.devices, better, made.stages / made.devices))
  if made.chunks >= better then helps = "another schedule may help (gp.schedule.compare)" end
  say("the devices will be idle for %.0f %% of the time: schedule '%s' has %s for %s; %s",
    100 * bubble, made.name, counted(made.chunks, "micro-batch"), counted(made.devices, "device"),
    helps)
end

-- ---- batch norm ------------------------------------------------------------------------------

--- Say that running statistics follow micro-batches, which are smaller than the mini-batch.
---@param model nn.Module
---@param chunks integer
function advice.batch_norm(model, chunks)
  local layers = chunks > 1 and running.layers(model) or {}
  if #layers == 0 then return end
  say("%s (first: layer %s) will move running statistics %d times a mini-batch, once for each "
    .. "micro-batch; deferred_batch_norm = true moves them once, by those of all of it",
    counted(#layers, "batch norm"), layers[1].name, chunks)
end

return advice
