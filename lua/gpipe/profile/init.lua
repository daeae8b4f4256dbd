-- lua/gpipe/profile/init.lua - `gp.profile`: what each layer of a model takes, in time and memory.
--
-- Times are measured on a copy of the model, and bytes are those that plans use; the files beside
-- this one say how. Here the arguments are checked and the figures put together.

local bytes = require "gpipe.profile.bytes"
local call = require "gpipe.ranks.call"
local class = require "gpipe.nn.class"
local cut = require "gpipe.profile.cut"
local machine = require "gpipe.machine"
local object = require "gpipe.profile.object"
local options = require "gpipe.options"
local precision = require "gpipe.pipeline.plan.precision"
local random = require "gpipe.random"
local ranks = require "gpipe.ranks"
local request = require "gpipe.profile.request"
local scope = require "gpipe.nn.scope"
local share = require "gpipe.ranks.share"
local sizes = require "gpipe.sizes"
local times = require "gpipe.profile.times"

local profile = {}

local WHO = "gp.profile"

-- ---- measuring ----------------------------------------------------------------------------------

local function device_name(device) return type(device) == "table" and device[1] or device end

--- Whether a device has its own memory, as GPUs do.
function profile.has_memory(device)
  return tostring(device_name(device)):find "^cuda" ~= nil
end

--- The device that is measured unless the script names one: the first GPU, else the processor.
function profile.default_device() return machine.gpus()[1] or "cpu:0" end

-- One row for each layer of the model, with its names.
local function rows_of(model)
  local rows = {}
  for i = 1, #model do
    rows[i] = { name = model:attribute_name(i), layer = scope.describe(model[i]) }
  end
  return rows
end

-- Call f and leave the streams of random numbers where they were: a forward may draw while it is
-- traced.
local function without_drawing(f)
  local before = random.state()
  local result = table.pack(xpcall(f, function(message) return message end))
  random.restore(before)
  if not result[1] then error(result[2], 0) end
  return table.unpack(result, 2, result.n)
end

local function input_bytes_of(wanted)
  local sum = 0
  for _, input in ipairs(wanted.inputs) do sum = sum + sizes.of(input) end
  return sum
end

--- Whether a device is described instead of being there.
function profile.is_modelled(device)
  return tostring(device_name(device)):find "^sim:" ~= nil
end

-- The figures of a device that is not there, from the cost model: nothing runs.
local function modelled(wanted, device)
  local one = require("gpipe.plan.devices").read(wanted.who, { device })[1]
  return object.new(wanted.who, {
    layers = require("gpipe.plan.modelled").profile(wanted, one), rows = wanted.rows,
    input_bytes = input_bytes_of(wanted), device = one.name, host_link = one.host_link,
  })
end

--- Plan and measure the layers of a model.
---@param wanted gpipe.ProfileRequest
---@param o {device: string|table, repeats: integer, timeout: number?}
---@return gpipe.ModelProfile
function profile.take(wanted, o)
  return without_drawing(function()
    if profile.is_modelled(o.device) then return modelled(wanted, o.device) end
    local rows = rows_of(wanted.model)
    bytes.plan(wanted, profile.has_memory(o.device), rows)
    local measured = { device = o.device, repeats = o.repeats, timeout = o.timeout,
      selective = true }
    local steps, device = ranks.alone(function() return times.measure(wanted, measured, rows) end)
    return object.new(wanted.who, {
      layers = rows, rows = wanted.rows, input_bytes = input_bytes_of(wanted), repeats = steps,
      device = device.name, threads = device.threads, host_link = device.host_link,
    })
  end)
end

--- Measure the stages of a cut, whose layers were measured before: parts of all layers together.
---@param wanted gpipe.ProfileRequest
---@param o {device: string|table, repeats: integer}
---@param balance integer[]
---@param layers {saved_bytes: number}[]
---@return {F: number[], B: number[]}? nil where a micro-batch cannot be kept
function profile.cut(wanted, o, balance, layers)
  if not times.has_room(o, layers) then return nil end
  return without_drawing(function()
    return ranks.alone(function() return cut.measure(wanted, o, balance) end)
  end)
end

--- profile.take for a call that every rank of a job makes: rank 0 measures, because two
--- measurements are never equal, and what is made of them has to be.
---@param wanted gpipe.ProfileRequest
---@param o {device: string|table, repeats: integer, timeout: number?}
---@return gpipe.ModelProfile
function profile.agree(wanted, o)
  return object.new(wanted.who, share.from(0, wanted.who, function()
    return object.fields(profile.take(wanted, o))
  end))
end

--- Plan the bytes that layers save and that their parameters take; nothing runs.
---@param wanted gpipe.ProfileRequest
---@param device string|table
---@return {saved_bytes: integer, parameter_bytes: integer}[]
function profile.sizes(wanted, device)
  return without_drawing(function()
    local rows = rows_of(wanted.model)
    bytes.sizes(wanted, profile.has_memory(device), rows)
    return rows
  end)
end

-- ---- gp.profile ---------------------------------------------------------------------------------

--- The rule of a device's name, or {name, threads = n}, for options.
profile.device_rule = {
  type = { "string", "table" },
  check = function(v)
    local name = device_name(v)
    if type(name) == "string"
      and (name:find "^cpu:%d+$" or name:find "^cuda:%d+" or name:find "^sim:") then return end
    return 'a device such as "cpu:0", "cuda:0" or {"cpu:0", threads = 2}'
  end,
}

local MOST_STEPS = 1000000 -- the times of all are kept until the end

local SPEC = {
  device = profile.device_rule,
  chunks = { type = "integer", min = 1, default = 1 },
  repeats = { type = "integer", min = 1, max = MOST_STEPS, default = 5 },
  loss = { type = "callable" },
  precision = precision.rule,
}

-- gp.profile{path = ...} or gp.profile{layers = ...}.
local function made_of(fields)
  if fields.path == nil then return object.new(WHO, fields) end
  local o = options.check(WHO, fields, { path = { type = "string", required = true } })
  return object.load(WHO, o.path)
end

--- What each layer of a model takes: measured seconds (medians, without the first steps) and the
--- bytes that plans use, for one micro-batch.
---
--- `layers[i]` has `name` and `layer`; in seconds `forward`, `input` (the gradient for its input;
--- 0 where none is needed), `weight` (the gradients for its weights), `backward` (both in one
--- action), `recompute` (what runs again if its stage recomputes) and `forward_dropped` (a forward
--- pass that keeps nothing for that reason); `output_bytes` (what crosses a cut behind it),
--- `gradient_bytes` (what comes back over it),
--- `saved_bytes` (what a micro-batch keeps of it), `head_bytes` (what of that W does not read),
--- `parameter_bytes`, `workspace_bytes`, `flop` of forward, `reads_input`, and `selective`:
--- `saved_bytes`, `head_bytes` and `recompute` where checkpoint = "selective" keeps products and
--- makes what is cheap again. A copy of the model runs: values, gradients, buffers, modes and
--- random numbers of the script's own stay as they are, and the model may belong to a pipeline. Of
--- a GPU the profile also has `host_link`: {bandwidth =, latency =} of copies to the host's memory
--- and back, measured, with which gp.plan offers to offload.
---
--- device: what to measure on, {"cpu:0", threads = 1} for one thread; the first GPU, else cpu:0
--- with all cores. In a job of several ranks every rank has to call; rank 0 measures, and all get
--- its profile. For a device that is not there, {"sim:0", memory = "8GiB", flops = 1e13,
--- bandwidth = 1e12}, the cost model says the times, and nothing runs. chunks: measure one of so
--- many micro-batches of the sample. repeats: steps that
--- count. loss and precision: as in gp.pipeline. The time of the loss belongs to the last layer; y
--- is needed only for it.
---
--- gp.profile{path = ...} reads what p:save(path) wrote. gp.profile{layers = {{forward = 1e-3,
--- ...}, ...}, rows =, input_bytes =} makes a profile by hand; what is left out is zero.
--- Errors: those of the layers, when the sample does not fit; nil, message, code where a file
--- cannot be read.
--- ```lua
--- local model = nn.Sequential {nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10)}
--- local p = gp.profile(model, {gp.randn {32, 64}})
--- assert(p.layers[2].saved_bytes == 32 * 256 * 4 and p.layers[2].parameter_bytes == 0)
--- print(p)
--- ```
---@param model nn.Sequential|table
---@param sample? gpipe.Tensor|table {x, y} or {x}
---@param opts? {device?: string|table, chunks?: integer, repeats?: integer, loss?: any,
--- precision?: string}
---@return gpipe.ModelProfile?
---@return string? message
---@return string? code
function profile.profile(model, sample, opts)
  if sample == nil and opts == nil and type(model) == "table" and not class.of(model)
    and not class.info(model) then
    return made_of(model)
  end
  local _ <close> = call.enter(WHO)
  local o = options.check(WHO, opts, SPEC)
  o.device = o.device or profile.default_device()
  return profile.agree(request.of(WHO, model, sample, o), o)
end

return profile
