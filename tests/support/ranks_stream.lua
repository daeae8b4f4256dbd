-- tests/support/ranks_stream.lua - a script that trains by streams of mini-batches and prints every
-- bit that comes out: run by one process and by several, it has to print the same.
--
--   gpipe-lua [--ranks N] tests/support/ranks_stream.lua DEVICES WAY...
--
-- A way is an asynchronous schedule, or a synchronous one that updates without a barrier.
local gp = require "gpipe"
local bits = dofile "tests/support/bits.lua"
local nn, optim = gp.nn, gp.optim

local devices = math.tointeger(tonumber(arg[1]))
local ASYNCHRONOUS = { pipedream = true, pipedream_2bw = true }

local function model()
  return nn.Sequential {
    nn.Linear(6, 8), nn.Stash "a", nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, 8), nn.Pop("a", "add"),
    nn.BatchNorm1d(8), nn.Linear(8, 4),
  }
end

-- Losses come late from an asynchronous pipeline; which step tells them must not differ either.
local function say_losses(what, losses)
  for i, loss in ipairs(type(losses) == "table" and losses or { losses }) do
    bits.say(("%s, loss %d"):format(what, i), loss)
  end
end

local function run(way)
  gp.seed(5)
  print("----", way)
  local pipe <close> = gp.pipeline(model(), {
    devices = devices, chunks = 4, schedule = way, loss = nn.CrossEntropyLoss(),
  })
  local opt = optim.AdamW(pipe:parameters(), { lr = 0.01 })
  pipe:use(opt, not ASYNCHRONOUS[way] and { barrier = false } or nil)
  for part = 1, 2 do
    for step = 1, 7 do
      -- a batch of another shape ends the stream
      local n = part == 2 and step > 4 and 10 or 24
      local x, y = gp.randn({ n, 6 }, { seed = step }), gp.randint(0, 4, { n }, { seed = step })
      opt.lr = 0.01 / step
      say_losses(("part %d, step %d"):format(part, step), pipe:step(x, y))
    end
    say_losses("flush", pipe:flush())
    bits.say("evaluated", pipe:evaluate(gp.ones { 8, 6 }, gp.randint(0, 4, { 8 }, { seed = 9 })))
    bits.say_all("state", pipe:state_dict())
    bits.say_all("moments", opt:state_dict())
    bits.say("steps", pipe:progress().steps)
  end
end

for i = 2, #arg do run(arg[i]) end
