-- tests/spec/cuda/update_halves_spec.lua - the halves of the weights that a model reads are never
-- older than the weights.
--
-- Updates write the halves beside the weights, and they stay from step to step
-- (runtime/engine/memory/halves.h). So after each way in which a weight can change, the loss must
-- be that of a new pipeline with the same weights, which has no older halves to read; and it must
-- differ from the loss before.

local gp = require "gpipe"
local gpu = require "tests.support.gpu"
local models = require "tests.support.models"
local nn, optim = gp.nn, gp.optim

local on_gpu = gpu.spec(it)

-- The widths are no multiples of what a thread reads at once.
local function mlp()
  gp.seed(3)
  return nn.Sequential {
    nn.Linear(6, 23), nn.GELU "tanh", nn.LayerNorm(23), nn.Linear(23, 23), nn.Tanh(),
    nn.Linear(23, 3),
  }
end

-- The first and the last layer share a weight.
local function tied()
  local model = mlp()
  local first, last = nn.Linear(6, 6), nn.Linear(6, 6)
  last.weight = first.weight
  return nn.Sequential { first, nn.Tanh(), nn.Linear(6, 6), nn.Tanh(), last, model }
end

local x, y = models.rows_of(8, 6), models.rows_of(8, 3)

local function pipeline(make, fields)
  local options = { devices = { "cuda:0" }, chunks = 2, precision = "bf16", loss = nn.MSELoss() }
  for key, value in pairs(fields or {}) do options[key] = value end
  if options.precision == "f16" then options.loss_scale = options.loss_scale or { initial = 16 } end
  return gp.pipeline(make(), options)
end

-- Returns the loss of a new pipeline with this one's weights.
local function loss_of_new(pipe, make, fields)
  local state = pipe:state_dict()
  local new <close> = pipeline(make,
    { precision = fields.precision, loss_scale = fields.loss_scale, chunks = fields.chunks })
  new:load_state_dict(state)
  return new:evaluate(x, y)
end

local function check(pipe, before, make, fields)
  local loss = pipe:evaluate(x, y)
  assert.are.equal(loss_of_new(pipe, make or mlp, fields or {}), loss)
  if before then assert.are_not.equal(before, loss) end
  return loss
end

-- ---- updates ---------------------------------------------------------------------------------

local OPTIMIZERS = {
  { "SGD", "SGD", { lr = 0.1 } }, { "momentum", "SGD", { lr = 0.1, momentum = 0.9 } },
  { "Adam", "Adam", { lr = 0.01 } }, { "AdamW", "AdamW", { lr = 0.01 } },
  { "RMSprop", "RMSprop", { momentum = 0.9 } }, { "Adagrad", "Adagrad", {} },
  { "Lion", "Lion", { lr = 0.01 } }, { "Adamax", "Adamax", {} },
  { "Adadelta", "Adadelta", { lr = 30 } }, { "NAdam", "NAdam", {} },
}

for _, optimizer in ipairs(OPTIMIZERS) do
  local name, kind, settings = table.unpack(optimizer)
  for _, precision in ipairs { "bf16", "f16" } do
    on_gpu(("%s in %s writes halves of its new weights"):format(name, precision),
      function()
      local fields = { precision = precision, balance = { 2, 4 }, devices = { "cuda:0", "cuda:0" } }
      local pipe <close> = pipeline(mlp, fields)
      local opt = optim[kind](pipe:parameters(), settings)
      local loss = pipe:evaluate(x, y)
      for _ = 1, 4 do
        pipe:step(x, y)
        opt:step()
        loss = check(pipe, loss, mlp, fields)
      end
    end)
  end
end

local USES = {
  { "behind a barrier", {} },
  { "that clips", { clip_norm = 0.1 } },
  { "of stages that do not wait for each other", { barrier = false } },
}

for _, use in ipairs(USES) do
  on_gpu(("an update %s leaves halves of its weights"):format(use[1]), function()
    for _, devices in ipairs { { "cuda:0", "cuda:0" }, { "cuda:0", "cuda:1" } } do
      if gpu.count() < 2 then devices[2] = "cuda:0" end
      local pipe <close> = pipeline(mlp, { balance = { 3, 3 }, devices = devices })
      pipe:use(optim.AdamW(pipe:parameters(), { lr = 0.01 }), use[2])
      local loss = pipe:evaluate(x, y)
      for _ = 1, 4 do
        pipe:step(x, y)
        pipe:flush()
        loss = check(pipe, loss)
      end
    end
  end)
end

on_gpu("an asynchronous schedule reads the halves of its version of the weights", function()
  local fields = { balance = { 3, 3 }, devices = { "cuda:0", "cuda:0" }, chunks = 1,
    schedule = "pipedream_2bw" }
  local pipe <close> = pipeline(mlp, fields)
  pipe:use(optim.AdamW(pipe:parameters(), { lr = 0.01 }))
  local loss
  for _ = 1, 3 do
    for _ = 1, 4 do pipe:step(x, y) end
    pipe:flush()
    loss = check(pipe, loss, mlp, { chunks = 1 })
  end
end)

on_gpu("an optimizer of some of the weights leaves the halves of all of them right", function()
  local pipe <close> = pipeline(mlp)
  local list = pipe:parameters()
  local some, rest = {}, {}
  for i, p in ipairs(list) do table.insert(i % 2 == 1 and some or rest, p) end
  local first, second = optim.AdamW(some, { lr = 0.01 }), optim.SGD(rest, { lr = 0.1 })
  local loss = pipe:evaluate(x, y)
  for i = 1, 4 do
    pipe:step(x, y)
    if i ~= 2 then first:step() end
    if i ~= 3 then second:step() end
    if i == 3 then list[1].value:copy_(list[1].value * 0.5) end
    loss = check(pipe, loss)
  end
end)

-- ---- other ways ------------------------------------------------------------------------------

local WRITES = {
  { "load_state_dict", function(pipe)
    local state = pipe:state_dict()
    for name, value in pairs(state) do state[name] = value * 0.75 end
    pipe:load_state_dict(state)
  end },
  { "copy_", function(pipe)
    local p = pipe:parameters()[1]
    p.value:copy_(p.value * -1)
  end },
  { "copy_ into a view", function(pipe)
    pipe:parameters()[1].value:select(1, 2):copy_(gp.ones { 6 }:to "cuda:0")
  end },
  { "a single element", function(pipe) pipe:parameters()[1].value[2][3] = 7 end },
}

for _, write in ipairs(WRITES) do
  on_gpu(("%s of the script takes effect, before and after updates"):format(write[1]), function()
    local pipe <close> = pipeline(mlp)
    local opt = optim.AdamW(pipe:parameters(), { lr = 0.01 })
    local loss = pipe:evaluate(x, y)
    write[2](pipe)
    loss = check(pipe, loss)
    for _ = 1, 3 do
      pipe:step(x, y)
      opt:step()
    end
    loss = check(pipe, loss)
    pipe:parameters()[3].value:copy_(gp.ones { 23 }:to "cuda:0")
    write[2](pipe)
    loss = check(pipe, loss)
    pipe:step(x, y)
    pipe:parameters()[3].value:copy_(gp.ones { 23 }:to "cuda:0" * 2) -- between gradient and update
    opt:step()
    check(pipe, loss)
  end)
end

on_gpu("a pipeline does not read the halves of a closed one", function()
  local model = mlp()
  local loss
  for _ = 1, 2 do
    local pipe <close> = pipeline(function() return model end)
    local opt = optim.AdamW(pipe:parameters(), { lr = 0.01 })
    pipe:step(x, y)
    opt:step()
    loss = check(pipe, loss)
  end
end)

on_gpu("batches of other shapes, and the two halves of a pass, read the same halves", function()
  local pipe <close> = pipeline(mlp)
  local opt = optim.AdamW(pipe:parameters(), { lr = 0.01 })
  local loss
  for n = 3, 6 do
    pipe:step(x:narrow(1, 1, n), y:narrow(1, 1, n))
    opt:step()
    loss = check(pipe, loss)
    local out = pipe:forward(x)
    pipe:backward(out - y)
    opt:step()
    loss = check(pipe, loss)
  end
end)

-- ---- updates that are not made ---------------------------------------------------------------

on_gpu("an update that the loss scale skips leaves values and halves unchanged", function()
  for _, used in ipairs { false, true } do
    local fields = { precision = "f16", loss_scale = { initial = 2 ^ 34, backoff = 0.25 } }
    local pipe <close> = pipeline(mlp, fields)
    local opt = optim.AdamW(pipe:parameters(), { lr = 0.01 })
    if used then pipe:use(opt) end
    local loss = pipe:evaluate(x, y)
    pipe:step(x, y)
    if not used then opt:step() end
    assert.are.equal(1, pipe.stats.skipped)
    assert.are.equal(loss, check(pipe, nil, mlp, fields))
    while opt:state_dict().step:item() < 2 do
      pipe:step(x, y)
      if not used then opt:step() end
    end
    check(pipe, loss, mlp, fields)
  end
end)

on_gpu("a step that fails leaves values and halves unchanged", function()
  local pipe <close> = pipeline(mlp)
  pipe:use(optim.AdamW(pipe:parameters(), { lr = 0.01 }))
  pipe:step(x, y)
  local loss = check(pipe)
  local broken = x:clone()
  broken[1][1] = 0 / 0
  pcall(pipe.step, pipe, broken, y)
  assert.are.equal(loss, check(pipe))
  pipe:step(x, y)
  check(pipe, loss)
end)

-- ---- stages that share a weight ----------------------------------------------------------------

on_gpu("a weight of two stages is read as its update left it, wherever they lie", function()
  local second = gpu.count() < 2 and "cuda:0" or "cuda:1"
  for _, devices in ipairs { { "cuda:0" }, { "cuda:0", "cuda:0" }, { "cuda:0", second } } do
    local pipe <close> = pipeline(tied, { devices = devices, balance = devices[2] and { 3, 3 } })
    pipe:use(optim.AdamW(pipe:parameters(), { lr = 0.01 }))
    local loss
    for _ = 1, 4 do
      pipe:step(x, y)
      loss = check(pipe, loss, tied)
    end
    pipe:parameters()[1].value:copy_(pipe:parameters()[1].value * -1)
    check(pipe, loss, tied)
  end
end)

-- The lines of pipe:lowered(), and what each device takes.
local function lowered(pipe)
  local lines, say = {}, print
  _G.print = function(text) lines[#lines + 1] = text end
  local good, message = pcall(pipe.lowered, pipe)
  _G.print = say
  assert(good, message)
  return table.concat(lines, "\n")
end

on_gpu("a weight crosses as the halves that its owner keeps, where a stage reads nothing else", function()
  local rows = models.rows_of(8, 64)
  local function wide()
    gp.seed(3)
    local first, last = nn.Linear(64, 64), nn.Linear(64, 64)
    last.weight = first.weight
    return nn.Sequential { first, nn.Tanh(), last }
  end
  -- the bytes of the second device's edges, and the line of the task that sends the weight
  local function edges(precision)
    local pipe <close> = pipeline(wide,
      { devices = { "cuda:0", "cuda:1" }, balance = { 2, 1 }, precision = precision })
    pipe:step(rows, rows)
    for _, device in ipairs(pipe:memory()) do assert.equal(device.planned, device.measured) end
    return pipe:memory()[2].areas.edges, lowered(pipe):match "0SEND: ([^\n]*)"
  end
  local plain, sent = edges "f32"
  assert.equal("writes a shared parameter of stage 0", sent)
  assert.truthy(plain > 64 * 64 * 4)
  for _, precision in ipairs { "bf16", "f16" } do
    local halves
    halves, sent = edges(precision)
    assert.equal("writes the halves of a shared parameter of stage 0", sent)
    assert.equal(plain, 2 * halves) -- activations and their gradients are halves, too
  end
end, 2)

on_gpu("a weight crosses in f32 where a stage reads it in f32 too", function()
  local Scaled = nn.class "Scaled"
  function Scaled:init(linear) self.linear = linear end
  function Scaled:forward(input)
    return self.linear(input) * self.linear.weight:mean():to(input.dtype)
  end
  local function both()
    local model = tied()
    return nn.Sequential { model[1], model[2], model[3], model[4], Scaled(model[5]), model[6] }
  end
  local pipe <close> = pipeline(both, { devices = { "cuda:0", "cuda:1" }, balance = { 3, 3 } })
  pipe:step(x, y)
  local text = lowered(pipe)
  assert.matches("0SEND: writes [^\n]*a shared parameter of stage 0", text)
end, 2)

-- ---- profiles ----------------------------------------------------------------------------------

on_gpu("a profile counts every update where the script writes to weights in between", function()
  local pipe <close> = pipeline(mlp)
  pipe:use(optim.AdamW(pipe:parameters(), { lr = 0.01 }))
  local weight = pipe:parameters()[1].value
  local text = tostring(pipe:profile(function()
    for _ = 1, 3 do
      pipe:step(x, y)
      weight:copy_(weight * 0.5)
    end
  end))
  assert.are.equal("3", text:match "adamw%s+f32%s+(%d+)")
end)
