-- tests/support/streams.lua - scripts that train by a stream of mini-batches, and everything that
-- they see of it as one string, for specs that compare numbers of replicas.

local gp = require "gpipe"
local optim = gp.optim

local streams = {}

-- PipeDream's weight stashing with updates after `batch` micro-batches: stage s uses the version
-- that is p - 1 - s updates old.
gp.schedule.define("stashing", function(p, m, opts)
  local rows, placement, b = gp.schedule.rows(p), {}, opts.batch -- micro-batches of an update
  for s = 0, p - 1 do
    local function version(i) return math.max(0, i // b - (p - 1 - s)) end
    local ahead = math.min((p - 1 - s) * b, m)
    placement[s] = s
    for i = 0, ahead - 1 do rows:F(s, s, i, version(i)) end
    for i = 0, m - 1 do
      if ahead + i < m then rows:F(s, s, ahead + i, version(ahead + i)) end
      rows:B(s, s, i, version(i))
      if i % b == b - 1 then rows:U(s, s, i // b) end
    end
  end
  return { placement = placement, rows = rows, batch = b }
end)

--- The option for that schedule.
function streams.stashing(batch) return { schedule = { "stashing", batch = batch } } end

--- The options of a pipeline of eight layers, with {replicas, chunks}; `more` are added.
function streams.options(cell, stages, more)
  local balance = {}
  for s = 1, stages do balance[s] = 8 // stages end
  local all = { replicas = cell[1], chunks = cell[2], balance = balance, loss = gp.nn.MSELoss(),
    schedule = "pipedream_2bw", seed = 5 }
  for key, value in pairs(more or {}) do all[key] = value end
  return all
end

local function batch_of(t, rows)
  return gp.randn({ rows, 6 }, { seed = 10 * t + 1 }), gp.randn({ rows, 6 }, { seed = 10 * t + 2 })
end

--- The bytes of a state, by its names.
function streams.text_of(dict)
  local names, parts = {}, {}
  for name in pairs(dict) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    parts[#parts + 1] = name .. dict[name]:contiguous():bytes()
  end
  return table.concat(parts)
end

-- What a script does after a step, and what it sees then.
local after = {
  flush = function(pipe, _, _, note) note(pipe:flush()) end,
  evaluate = function(pipe, x, y) return ("%.17g"):format(pipe:evaluate(x, y)) end,
  state = function(pipe) return streams.text_of(pipe:state_dict()) end,
  load = function(pipe)
    local dict = pipe:state_dict()
    for name, value in pairs(dict) do
      if value.dtype ~= "i64" then dict[name] = value * 0.5 end
    end
    pipe:load_state_dict(dict)
  end,
}

--- Everything that a script of {rows =, lr =, then_ = ...} sees, as one string. of: tower (makes
--- the model of eight layers), cell, stages, script, more (options), use (options of pipe:use),
--- prepare(pipe), which may change the pipeline.
function streams.follow(of)
  local pipe <close> = gp.pipeline(of.tower(), streams.options(of.cell, of.stages, of.more))
  local opt = optim.AdamW(pipe:parameters(), { lr = 0.01, weight_decay = 0.1 })
  pipe:use(opt, of.use)
  if of.prepare then of.prepare(pipe) end
  local seen, losses = {}, {}
  local function note(list)
    if type(list) == "number" then list = { list } end
    table.move(list, 1, #list, #losses + 1, losses)
  end
  for t, step in ipairs(of.script) do
    local x, y = batch_of(t, step.rows)
    opt.lr = step.lr or opt.lr
    note(pipe:step(x, y))
    if step.then_ then seen[#seen + 1] = after[step.then_](pipe, x, y, note) end
  end
  note(pipe:flush() or {})
  for i, loss in ipairs(losses) do losses[i] = ("%.17g"):format(loss) end
  assert(#of.script == #losses)
  for _, device in ipairs(pipe:memory()) do assert(device.planned == device.measured) end
  return table.concat(seen) .. table.concat(losses, " ") .. streams.text_of(pipe:state_dict())
    .. streams.text_of(opt:state_dict()), pipe.stats
end

--- So many steps with a rate that falls.
function streams.steady(n, rows)
  local script = {}
  for t = 1, n do script[t] = { rows = rows, lr = 0.02 / t } end
  return script
end

return streams
