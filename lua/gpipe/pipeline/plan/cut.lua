-- lua/gpipe/pipeline/plan/cut.lua - decides how many stages and devices a pipeline has, and where
-- the stages lie.
--
-- The schedule places the stages: a loop or a V gives a device several stages, a bidirectional
-- schedule gives a stage two devices. So the balance is per stage, and the schedule says how many
-- stages a device holds.

local advice = require "gpipe.pipeline.advice"
local counted = require "gpipe.counted"
local errors = require "gpipe.errors"
local balance = require "gpipe.pipeline.plan.balance"
local devices = require "gpipe.pipeline.plan.devices"
local layer_modes = require "gpipe.pipeline.plan.layer_modes"
local machine = require "gpipe.machine"
local named_balance = require "gpipe.pipeline.plan.named_balance"
local ranks = require "gpipe.ranks"
local replicas = require "gpipe.pipeline.plan.replicas"
local known = require "gpipe.schedule.known"
local schedule = require "gpipe.schedule"

local cut = {}

local WHO = "gp.pipeline"

-- Build the schedule for a number of devices, and verify it.
local function verified(wanted, p, chunks)
  local made, report = known.verified(wanted, p, chunks)
  if not made then errors.raise("%s: %s", WHO, report) end
  return made
end

-- The number of stages on each device.
local function stages_per_device(made)
  return made.stages // made.devices
end

-- The numbers of devices that may hold this many stages, the named number first. A user's schedule
-- need not give each device the same number of stages.
local function candidates(wanted, stages, named)
  local list = { named }
  for p = stages, 1, -1 do
    if p ~= named and (stages % p == 0 or schedule.is_own(wanted)) then list[#list + 1] = p end
  end
  return list
end

-- Build the schedule over this many stages. A schedule given by name is tried with several numbers
-- of devices: if it puts several stages on each device, it needs fewer devices and may not exist
-- for more.
local function for_stages(wanted, stages, chunks, named)
  if schedule.is(wanted) then return verified(wanted) end
  local faults, other = {}, nil
  for _, p in ipairs(candidates(wanted, stages, named)) do
    local good, made = pcall(verified, wanted, p, chunks)
    if good and made.stages == stages then return made end
    if good then other = other or made else faults[p] = made end
  end
  local per = other and stages_per_device(other) or 1
  if per < 1 or stages % per ~= 0 then
    errors.raise("%s: schedule '%s' has %d stages on each device, balance has %d stages: expected "
      .. "a multiple of %d", WHO, other.name, per, stages, per)
  end
  error(faults[stages // per] or faults[stages], 0)
end

-- Build the schedule over this many devices, or over fewer if the model has too few layers.
local function for_devices(wanted, p, chunks, layers)
  local made = verified(wanted, p, chunks)
  if made.stages <= layers or schedule.is(wanted) then return made end
  local per = stages_per_device(made)
  if layers // per < 1 then
    errors.raise("%s: schedule '%s' has %d stages on each device, the model %d layers: expected at "
      .. "least a layer per stage", WHO, made.name, per, layers)
  end
  return verified(wanted, layers // per, chunks)
end

-- Decide the schedule and the number of devices, and the balance if the option is a list.
local function arrange(model, opts, count, most)
  local list = type(opts.balance) == "table" and balance.check(opts.balance, model) or nil
  local made
  if schedule.is(opts.schedule) then
    made = verified(opts.schedule)
  elseif list then
    made = for_stages(opts.schedule, #list, opts.chunks, count and count > 0 and count or nil)
  else
    made = for_devices(opts.schedule, math.max(count or most, 1), opts.chunks, #model)
  end
  local part = made.batch > 0 and not made.recipe and made.chunks % opts.chunks == 0 -- of a stream
  if list and made.stages ~= #list or made.chunks ~= opts.chunks and not part then
    errors.raise("%s: the schedule has %d stages and %d micro-batches, balance and chunks give %d "
      .. "and %d: expected the same (a schedule's name fits itself)", WHO, made.stages, made.chunks,
      list and #list or made.stages, opts.chunks)
  end
  if made.stages > #model then
    errors.raise("%s: the schedule has %s, the model %s: expected at least a layer per stage", WHO,
      counted(made.stages, "stage"), counted(#model, "layer"))
  end
  return list, made
end

-- The balance by a word, or without option `balance`; the device is one to measure on.
local function balanced(model, opts, made, device)
  return named_balance.list(opts.balance, model, made.stages, {
    sample = opts.sample, loss = opts.loss, chunks = opts.chunks * opts.replicas,
    checkpoint = opts.checkpoint,
    precision = opts.precision, device = device,
  })
end

-- How many devices a replica has where none are named and there is no balance: a stage for each
-- rank, or for each GPU.
local function most_of(opts, named)
  return named and 1 or math.max(1, devices.most() // opts.replicas)
end

-- What the layers are to keep is known when the stages are.
local function settle_modes(opts, list)
  opts.checkpoint = layer_modes.settle(WHO, opts.checkpoint, list, opts.chunks * opts.replicas)
end

-- A device of this rank to measure on: the first, or a core where it has none.
local function measured_on(chosen)
  for _, device in ipairs(chosen) do
    if device.rank == ranks.rank() then return { device.device, threads = device.threads } end
  end
  return { "cpu:0", threads = 1 }
end

--- Decide balance, schedule and number of devices; any of them may determine the others. What
--- option `checkpoint` says of stages, or as a function, becomes a list of layers in `opts`.
---@param model nn.Sequential
---@param opts table {balance: integer[]|string|nil, schedule, chunks, checkpoint, loss, sample}
---@param count integer? number of named devices
---@param most? integer number of devices if none are named and there is no balance; nil: as many as
--- gp.pipeline would take here
---@return integer[] balance layers per stage
---@return gpipe.Schedule of all replicas
---@return gpipe.Schedule of one of them
function cut.arrange(model, opts, count, most)
  local list, made = arrange(model, opts, replicas.share(WHO, count, opts), most or most_of(opts))
  list = list or balanced(model, opts, made, false)
  settle_modes(opts, list)
  return list, replicas.all(WHO, made, opts), made
end

--- The same, on devices of this machine.
---@param model nn.Sequential
---@param opts table the same, and devices: integer|table|nil
---@return integer[] balance layers per stage
---@return {name: string, threads: integer}[] devices
---@return gpipe.Schedule of all replicas
---@return gpipe.Schedule of one of them
function cut.resolve(model, opts)
  local named = opts.devices or machine.configured()
  if type(named) == "number" then named = devices.spread(named) end
  local share = replicas.share(WHO, named and #named, opts)
  local list, one = arrange(model, opts, share, most_of(opts, named))
  local made = replicas.all(WHO, one, opts)
  local chosen = devices.resolve(named, made.devices)
  if not list then
    list = balanced(model, opts, one, measured_on(chosen))
    list = ranks.tell("balance", list, 0) -- what one rank has measured serves all
  end
  settle_modes(opts, list)
  advice.unused_devices(named, made)
  advice.shared_gpus(chosen)
  advice.idle_devices(one)
  return list, chosen, made, one
end

return cut
