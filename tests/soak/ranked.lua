-- tests/soak/ranked.lua FOLDER STEPS PLACE - the run over three ranks that tests/soak/ranks kills.
-- Each rank leaves its process in PLACE/RANK; rank 0 leaves the final bytes in PLACE/bits.
local gp = require "gpipe"
local core = require "gpipe.core"
local nn = gp.nn

local folder, steps, place = arg[1], math.tointeger(tonumber(arg[2])), arg[3]

local function write(name, text)
  local path = ("%s/%s"):format(place, name)
  local file <close> = assert(io.open(path .. ".new", "wb"))
  file:write(text)
  file:close()
  assert(os.rename(path .. ".new", path))
end

gp.seed(1)
local model = nn.Sequential {
  nn.Linear(8, 16), nn.Tanh(), nn.Dropout(0.1), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 4),
}
local pipe <close> = gp.pipeline(model, {
  devices = 3, chunks = 4, loss = nn.CrossEntropyLoss(), watchdog = 20,
})
local opt = gp.optim.AdamW(pipe:parameters(), { lr = 1e-2 })
local data = gp.data.epochs(gp.data.tensors(gp.randn { 64, 8 }, gp.randint(0, 4, { 64 })),
  { batch = 16, seed = 2 })
local run <close> = gp.run(folder, { pipe = pipe, opt = opt, data = data, steps = steps, every = 20,
  quiet = true })
write(tostring(gp.rank()), tostring((core.process())))
for step, x, y in run:steps() do
  local loss = pipe:step(x, y)
  opt:step()
  run:log(step, { loss = loss })
end
local bits = {}
for name, value in pairs(pipe:state_dict()) do bits[#bits + 1] = name .. value:bytes() end
table.sort(bits)
run:finish()
if gp.rank() == 0 then write("bits", table.concat(bits)) end
