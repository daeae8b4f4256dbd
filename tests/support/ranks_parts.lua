-- tests/support/ranks_parts.lua - what a loop may call beside the pipeline, in one process or in
-- several: averages, accumulation, records of parameters, and each kind of optimizer with its
-- checkpoint. Arguments: what to run, replicas. Prints bits.

local gp = require "gpipe"
local nn, optim = gp.nn, gp.optim
local what, replicas = arg[1], tonumber(arg[2])

-- Muon takes matrices alone; the second stage of "bare" has no parameters.
local bias = what ~= "Muon"
gp.seed(3)
local model = nn.Sequential {
  nn.Linear(4, 16, { bias = bias }), nn.Tanh(), nn.Dropout(0.1), nn.Linear(16, 2, { bias = bias }),
  nn.Tanh(),
}
local pipe <close> = gp.pipeline(model, {
  balance = what == "bare" and { 4, 1 } or { 2, 3 }, chunks = 2, loss = nn.MSELoss(),
  replicas = replicas > 1 and replicas or nil,
})
local x, y = gp.randn { 32, 4 }, gp.randn { 32, 2 }

local function say(name, value)
  if gp.rank() == 0 then print(name, ("%a"):format(value)) end
end

local function say_all(name, state)
  local names = {}
  for key in pairs(state) do names[#names + 1] = key end
  table.sort(names)
  for _, key in ipairs(names) do say(name .. " " .. key, state[key]:sum():item()) end
end

local function temporary()
  local path = gp.rank() == 0 and os.tmpname() or ""
  if gp.rank() == 0 then os.remove(path) end
  return gp.broadcast(path, 0)
end

local parts = {}

function parts.ema()
  local opt = optim.AdamW(pipe:parameters(), { lr = 1e-2 })
  local ema = gp.train.ema(pipe, { decay = 0.9 })
  for _ = 1, 3 do
    pipe:step(x, y)
    opt:step()
    ema:update()
  end
  say("of averages", ema:apply(function() return pipe:evaluate(x, y) end))
  say("of weights", pipe:evaluate(x, y))
  say_all("average", ema:state_dict())
  local state = ema:state()
  ema:update()
  say_all("restored", ema:restore(state):state_dict())
end

function parts.accumulate()
  local opt = optim.AdamW(pipe:parameters(), { lr = 1e-2 })
  local accumulate = gp.train.accumulate(pipe, 4)
  for i = 1, 8 do
    if i == 3 or i == 6 then -- the gradients go with the state
      local state = accumulate:state()
      say_all("gradient", state.gradients)
      pipe:zero_grad()
      accumulate:restore(state)
    end
    if accumulate(x * i, y) then opt:step() end
  end
  say_all("weight", pipe:state_dict())
end

function parts.events()
  pipe:step(x, y)
  local path = temporary() .. gp.rank() .. ".tfevents"
  local events = assert(gp.train.events(path))
  assert(events:parameters(1, pipe))
  events:close()
  local file <close> = assert(io.open(path, "rb"))
  local names = {}
  for name in file:read "a":gmatch "[%l]+/%d+%.%l+" do names[#names + 1] = name end
  os.remove(path)
  if gp.rank() == 0 then print(table.concat(names, " ")) end
end

-- Trains, saves, goes on, and goes on again from the checkpoint.
local function optimize(name)
  local opt = optim[name](pipe:parameters(), { lr = name == "LBFGS" and 0.1 or 1e-2 })
  local function step()
    if name == "LBFGS" then
      opt:step(function() return pipe:step(x, y) end)
    else
      pipe:step(x, y)
      opt:step()
    end
    return pipe:evaluate(x, y)
  end
  for _ = 1, 3 do say("loss", step()) end
  local path, moments = temporary(), name ~= "LBFGS" and opt or nil
  assert(gp.checkpoint.save(path, { pipe = pipe, opt = moments,
    extra = { opt = not moments and opt:state() or nil } }))
  if moments then say_all("moment", opt:state_dict()) end
  say("went on", step())
  local extra = assert(gp.checkpoint.load(path, { pipe = pipe, opt = moments }))
  if not moments then opt:restore(extra.opt) end
  say("went on", step())
  gp.barrier()
  if gp.rank() == 0 then os.execute("rm -rf " .. path) end
end

parts.bare = function() optimize "Adafactor" end
if parts[what] then parts[what]() else optimize(what) end
