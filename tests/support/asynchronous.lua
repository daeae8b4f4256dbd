-- tests/support/asynchronous.lua - the update rules of asynchronous schedules, simulated one
-- mini-batch after another with explicit versions of the weights.
--
-- The gradient of mini-batch k is computed with weights of which stage s has the version that the
-- paper says, and applied to the newest. One stage computes it; the engine must give the same bits.

local gp = require "gpipe"
local nn, optim = gp.nn, gp.optim

local asynchronous = {}

--- The version that mini-batch k of a stream uses on stage s of p, by schedule.
asynchronous.RULES = {
  pipedream = function(k, s, p) return math.max(0, k - (p - 1 - s)) end,
  vertical_sync = function(k, _, p) return math.max(0, k - (p - 1)) end,
  pipedream_2bw = function(k) return math.max(0, k - 1) end,
}

--- Return the option `schedule` for a rule.
function asynchronous.schedule(rule)
  if rule == "vertical_sync" then return { "pipedream", vertical_sync = true } end
  return { rule }
end

--- Return the number of micro-batches of an update.
function asynchronous.batch(rule, chunks) return rule == "pipedream_2bw" and chunks or 1 end

-- ---- a script of training -----------------------------------------------------------------------

-- Returns the rows and targets of step t.
local function batch_of(made, t, rows)
  if made.batch then return made.batch(t, rows) end
  return gp.randn({ rows, made.width }, { seed = 10 * t + 1 }),
    gp.randn({ rows, made.width }, { seed = 10 * t + 2 })
end

-- Returns the sizes of the at most `chunks` mini-batches into which a step's rows are split.
local function split(rows, chunks)
  local m = math.min(rows, chunks)
  local sizes = {}
  for i = 1, m do sizes[i] = rows // m + (i <= rows % m and 1 or 0) end
  return sizes
end

-- Returns the mini-batches of a step as {x, y}; each has an update of its own.
local function mini_batches(made, rule, t, rows, chunks)
  local x, y = batch_of(made, t, rows)
  if rule == "pipedream_2bw" then return { { x, y } } end
  local list, first = {}, 1
  for _, n in ipairs(split(rows, chunks)) do
    list[#list + 1] = { x:narrow(1, first, n):contiguous(), y:narrow(1, first, n):contiguous() }
    first = first + n
  end
  return list
end

local function new_optimizer(made, params)
  return (made.optimizer or function(p) return optim.AdamW(p, { lr = 1e-2 }) end)(params)
end

-- ---- simulation --------------------------------------------------------------------------------

local Sequential = {}
Sequential.__index = Sequential

-- One stage computes gradients, and keeps every version since the pipeline was last empty.
local function sequential(made, rule, p, chunks)
  local batch = asynchronous.batch(rule, chunks)
  local pipe = gp.pipeline(made.model(),
    { chunks = batch, loss = made.loss, seed = 5, schedule = "naive" })
  local self = setmetatable({ pipe = pipe, rule = asynchronous.RULES[rule], p = p, buffers = {} },
    Sequential)
  self.opt, self.stage_of, self.losses = new_optimizer(made, pipe:parameters()), {}, {}
  for _, entry in ipairs(pipe:parameters()) do
    local layer = math.tointeger(tonumber(entry.name:match "^%d+"))
    self.stage_of[entry.name] = made.stage_of(layer, p)
  end
  self:drain()
  return self
end

function Sequential:drain() self.versions, self.k = { [0] = self.pipe:state_dict() }, 0 end

-- Returns weights in the versions that mini-batch k uses; buffers have no versions.
function Sequential:mixed()
  local mixed = {}
  for name, newest in pairs(self.versions[self.k]) do
    local stage = self.stage_of[name]
    mixed[name] = stage and self.versions[self.rule(self.k, stage, self.p)][name] or newest
  end
  return mixed
end

function Sequential:step(x, y, lr)
  local pipe = self.pipe
  if lr then self.opt.lr = lr end
  pipe:load_state_dict(self:mixed())
  self.losses[#self.losses + 1] = pipe:step(x, y)
  local newest = pipe:state_dict()
  for name in pairs(self.stage_of) do newest[name] = self.versions[self.k][name] end
  pipe:load_state_dict(newest)
  self.opt:step()
  self.k = self.k + 1
  self.versions[self.k] = pipe:state_dict()
end

-- ---- both --------------------------------------------------------------------------------------

-- Completes the record of a script: losses in order, and states where the script looked at them.
local function finish(record, pipe, opt)
  record.state, record.optimizer = pipe:state_dict(), opt:state_dict()
  return record
end

--- Simulate a script: {{rows =, lr =, then_ = "evaluate" | "state" | "flush"}, ...}.
function asynchronous.simulate(made, rule, p, chunks, script)
  local sim, record, last = sequential(made, rule, p, chunks), { seen = {} }, nil
  for t, step in ipairs(script) do
    if step.rows ~= last then sim:drain() end -- another plan: the pipeline is drained in between
    last = step.rows
    for _, one in ipairs(mini_batches(made, rule, t, step.rows, chunks)) do
      sim:step(one[1], one[2], step.lr)
    end
    if step.then_ == "evaluate" then
      record.seen[t] = sim.pipe:evaluate(batch_of(made, t, step.rows))
    end
    if step.then_ == "state" then record.seen[t] = sim.pipe:state_dict() end
    if step.then_ then sim:drain() end
  end
  record.losses = sim.losses
  finish(record, sim.pipe, sim.opt)
  sim.pipe:close()
  return record
end

--- Run the same script in a pipeline of p stages.
function asynchronous.run(made, rule, p, chunks, script, options)
  local merged = { loss = made.loss, seed = 5, chunks = chunks,
    schedule = asynchronous.schedule(rule) }
  merged.balance = made.balance(p)
  for key, value in pairs(options or {}) do merged[key] = value end
  local pipe <close> = gp.pipeline(made.model(), merged)
  local opt = new_optimizer(made, pipe:parameters())
  local record = { seen = {}, losses = {}, counts = {} }
  local function note(losses) table.move(losses, 1, #losses, #record.losses + 1, record.losses) end
  pipe:use(opt)
  for t, step in ipairs(script) do
    local x, y = batch_of(made, t, step.rows)
    if step.lr then opt.lr = step.lr end
    local losses = pipe:step(x, y)
    record.counts[t] = #losses
    note(losses)
    if step.then_ == "evaluate" then record.seen[t] = pipe:evaluate(x, y) end
    if step.then_ == "state" then record.seen[t] = pipe:state_dict() end
    if step.then_ == "flush" then note(pipe:flush()) end
  end
  note(pipe:flush())
  return finish(record, pipe, opt)
end

local function differing(a, b)
  for name, tensor in pairs(a) do
    if not gp.equal(tensor, b[name]) then return name end
  end
end

-- States must agree in every bit. Evaluated losses only agree closely, because other micro-batches
-- add them in another order.
local function same(want, got)
  if type(want) == "table" then return not differing(want, got) end
  return math.abs(want - got) <= 1e-6 * want
end

--- Say how two records differ; nil where every bit is the same.
function asynchronous.difference(want, got)
  if #want.losses ~= #got.losses then
    return ("%d losses, not %d"):format(#got.losses, #want.losses)
  end
  for i, loss in ipairs(want.losses) do
    if loss ~= got.losses[i] then
      return ("loss %d: %.17g, not %.17g"):format(i, got.losses[i], loss)
    end
  end
  for t, seen in pairs(want.seen) do
    if not same(seen, got.seen[t]) then return "what was seen after step " .. t end
  end
  return differing(want.state, got.state) or differing(want.optimizer, got.optimizer)
end

-- ---- models ------------------------------------------------------------------------------------

--- Make a model with a layer for each of up to 8 stages, dropout and a layer norm; fields change
--- it.
function asynchronous.tower(fields)
  local made = { width = 6, layers = 8, loss = nn.MSELoss() }
  function made.model()
    gp.seed(3)
    local layers = {}
    for i = 1, made.layers do
      layers[i] = nn.Sequential { nn.LayerNorm(6), nn.Linear(6, 6), nn.Dropout(0.1), nn.Tanh() }
    end
    return nn.Sequential(layers)
  end
  function made.balance(p)
    local list = {}
    for s = 1, p do list[s] = made.layers * s // p - made.layers * (s - 1) // p end
    return list
  end
  function made.stage_of(layer, p)
    local first = 1
    for s, n in ipairs(made.balance(p)) do
      if layer < first + n then return s - 1 end
      first = first + n
    end
  end
  for key, value in pairs(fields or {}) do made[key] = value end
  return made
end

return asynchronous
