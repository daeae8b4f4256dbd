-- tests/soak/ranked.lua CASE FOLDER STEPS PLACE - the run over several ranks that tests/soak/ranks
-- kills. Each rank leaves its process in PLACE/RANK; rank 0 leaves the final bytes in PLACE/bits.
local gp = require "gpipe"
local core = require "gpipe.core"
local nn = gp.nn

local case, folder, steps, place = arg[1], arg[2], math.tointeger(tonumber(arg[3])), arg[4]

local function write(name, text)
  local path = ("%s/%s"):format(place, name)
  local file <close> = assert(io.open(path .. ".new", "wb"))
  file:write(text)
  file:close()
  assert(os.rename(path .. ".new", path))
end

-- Every case has dropout, whose draws have to go on where they were.
local function plain()
  return nn.Sequential {
    nn.Linear(8, 16), nn.Tanh(), nn.Dropout(0.1), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 4),
  }
end

-- Two values pass over the ranks in between, there and back.
local function skips()
  return nn.Sequential {
    nn.Linear(8, 16), nn.Stash "a", nn.Linear(16, 16), nn.Tanh(), nn.Stash "b", nn.Dropout(0.1),
    nn.Linear(16, 16), nn.BatchNorm1d(16), nn.Pop("b", "add"), nn.Tanh(), nn.Linear(16, 16),
    nn.Pop("a", "add"), nn.Linear(16, 4),
  }
end

local CASES = {
  pipeline = { plain, { devices = 3 } },
  -- ZeRO: each replica keeps the moments of its own parameters, and a file of its own in checkpoints
  zero = { plain, { replicas = 2, zero = 1, devices = 4 }, clip = 0.5 },
  -- older versions of the weights are under way between the ranks when one is killed
  stream = { plain, { replicas = 2, devices = 4, schedule = "pipedream_2bw" }, used = true },
  skips = { skips, { devices = 4, schedule = "zb_h1", checkpoint = "always" }, used = true },
  two_copies = { plain, { devices = 2, schedule = "chimera" } },
}

local of = assert(CASES[case], "the case has a wrong name")
local make, opts = of[1], of[2]
opts.chunks, opts.loss, opts.watchdog = 4, nn.CrossEntropyLoss(), 20
gp.seed(1)
local pipe <close> = gp.pipeline(make(), opts)
local opt = gp.optim.AdamW(pipe:parameters(), { lr = 1e-2 })
if of.used then pipe:use(opt) end
local data = gp.data.epochs(gp.data.tensors(gp.randn { 64, 8 }, gp.randint(0, 4, { 64 })),
  { batch = 16, seed = 2 })
local run <close> = gp.run(folder, { pipe = pipe, opt = opt, data = data, steps = steps, every = 20,
  quiet = true })
write(tostring(gp.rank()), tostring((core.process())))
for step, x, y in run:steps() do
  local loss = pipe:step(x, y)
  if of.clip then gp.optim.clip_grad_norm(pipe:parameters(), of.clip) end
  if not of.used then opt:step() end
  run:log(step, { loss = type(loss) == "number" and loss or 0 })
end
pipe:flush()
local bits = {}
for _, state in ipairs { pipe:state_dict(), opt:state_dict() } do
  for name, value in pairs(state) do bits[#bits + 1] = name .. value:bytes() end
end
table.sort(bits)
run:finish()
if gp.rank() == 0 then write("bits", table.concat(bits)) end
