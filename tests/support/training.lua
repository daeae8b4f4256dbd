-- tests/support/training.lua - trains a model in one pipeline and checks whether another one gives
-- the same bits.
--
-- What DESIGN section 8 promises is compared with ==: a run is its losses, and its last gradients,
-- parameters and buffers.

local gp = require "gpipe"
local optim = gp.optim

local training = {}

--- Return devices cpu:0 .. cpu:n-1 with the same number of threads.
function training.devices(n, threads)
  local list = {}
  for i = 1, n do list[i] = { "cpu:" .. i - 1, threads = threads or 1 } end
  return list
end

--- Return copies of all gradients by name.
function training.gradients(pipe)
  local copies = {}
  for _, p in ipairs(pipe:parameters()) do copies[p.name] = p.grad and p.grad:clone() end
  return copies
end

--- Train a fresh model. setup: {model = function, x, y, loss, steps, lr, frozen = nothing to
--- train}; options: those of gp.pipeline.
function training.run(setup, options)
  local model = setup.model()
  local merged = { loss = setup.loss, seed = 5 }
  for key, value in pairs(options) do merged[key] = value end
  local pipe <close> = gp.pipeline(model, merged)
  local opt = not setup.frozen and optim.AdamW(pipe:parameters(), { lr = setup.lr or 1e-2 })
  local run = { losses = {} }
  for step = 1, setup.steps or 3 do
    run.losses[step] = pipe:step(setup.x, setup.y)
    if step == 1 then run.first = training.gradients(pipe) end
    if opt then opt:step() end
  end
  run.evaluated = pipe:evaluate(setup.x, setup.y)
  run.gradients, run.state = training.gradients(pipe), pipe:state_dict()
  return run
end

--- Return the first name under which two tables of tensors differ, or nil.
function training.differing(a, b)
  for name, tensor in pairs(a) do
    if not b[name] or not gp.equal(tensor, b[name]) then return name end
  end
  for name in pairs(b) do
    if not a[name] then return name end
  end
end

--- Say how two runs differ, or return nil where every bit is the same.
function training.difference(a, b)
  for step, loss in ipairs(a.losses) do
    if loss ~= b.losses[step] then
      return ("the loss of step %d: %.17g and %.17g"):format(step, loss, b.losses[step])
    end
  end
  if a.evaluated ~= b.evaluated then
    return ("the evaluated loss: %.17g and %.17g"):format(a.evaluated, b.evaluated)
  end
  for _, what in ipairs { "first", "gradients", "state" } do
    local name = training.differing(a[what], b[what])
    if name then return what .. " " .. name end
  end
end

local function describe(options)
  local names = {}
  for i, device in ipairs(options.devices or {}) do
    names[i] = type(device) == "table"
      and ("%s with %s threads"):format(device[1], device.threads or 1) or device
  end
  return ("balance {%s}, %s, %s, %s chunks, on %s"):format(
    table.concat(options.balance or {}, ","), tostring(options.schedule),
    tostring(options.checkpoint),
    tostring(options.chunks), table.concat(names, ", "))
end

--- Return every combination of the lists in `space` {balance, schedule, checkpoint, threads,
--- chunks}.
function training.combinations(space)
  local all = {}
  for _, balance in ipairs(space.balance) do
    for _, schedule in ipairs(space.schedule or { "naive", "gpipe", "1f1b" }) do
      for _, checkpoint in ipairs(space.checkpoint or { "always", "except_last", "never" }) do
        for _, threads in ipairs(space.threads or { 1 }) do
          all[#all + 1] = {
            balance = { table.unpack(balance) }, schedule = schedule, checkpoint = checkpoint,
            chunks = space.chunks or 3, devices = training.devices(#balance, threads),
          }
        end
      end
    end
  end
  return all
end

--- Train in each of the pipelines: all must give the bits of the first run, which is returned.
function training.check_same(setup, list)
  local reference = training.run(setup, list[1])
  for i = 2, #list do
    local what = training.difference(reference, training.run(setup, list[i]))
    if what then error(("%s differs in %s"):format(describe(list[i]), what), 2) end
  end
  return reference
end

--- Return the largest |a - b| / (relative |b| + absolute) over all elements of two tables of
--- tensors: <= 1 is close.
function training.distance(a, b, relative, absolute)
  local worst = 0
  for name, tensor in pairs(a) do
    local wide, other = tensor:to("cpu"):to("f64"), b[name]:to("cpu"):to("f64")
    local scale = gp.where(other:lt(0), -other, other) * relative + absolute
    local gap = wide - other
    worst = math.max(worst, (gp.where(gap:lt(0), -gap, gap) / scale):max():item())
  end
  return worst
end

return training
