-- tests/support/replicas_resume.lua - trains a step with replicas, from the checkpoint in a folder
-- if it has one, and saves another one there.
--
--   gpipe-lua [--ranks N] replicas_resume.lua FOLDER STEP REPLICAS CHUNKS STAGES [sync]
local gp = require "gpipe"
local nn, optim = gp.nn, gp.optim

local folder, step = arg[1], math.tointeger(tonumber(arg[2]))
local replicas, chunks = math.tointeger(tonumber(arg[3])), math.tointeger(tonumber(arg[4]))
local stages = math.tointeger(tonumber(arg[5]))

gp.seed(5)
local model = nn.Sequential {
  nn.Linear(6, 16), nn.Tanh(), nn.Dropout(0.2), nn.Linear(16, 16), nn.LayerNorm(16),
  nn.BatchNorm1d(16), nn.Linear(16, 4),
}
local pipe <close> = gp.pipeline(model, {
  devices = stages * replicas, chunks = chunks, replicas = replicas, loss = nn.CrossEntropyLoss(),
  sync_batch_norm = arg[6] == "sync",
})
local opt = optim.AdamW(pipe:parameters(), { lr = 0.01 })
pipe:use(opt, { clip_norm = 0.5 })
local from = ("%s/%d"):format(folder, step - 1)
if step > 1 then assert(gp.checkpoint.load(from, { pipe = pipe, opt = opt })) end
local loss = pipe:step(gp.randn({ 24, 6 }, { seed = step }), gp.randint(0, 4, { 24 },
  { seed = 100 + step }))
assert(gp.checkpoint.save(("%s/%d"):format(folder, step), { pipe = pipe, opt = opt }))
print(step, ("%.17g"):format(loss))

local names, state = {}, {}
for part, tensors in pairs { model = pipe:state_dict(), moments = opt:state_dict() } do
  for name, tensor in pairs(tensors) do
    names[#names + 1] = part .. " " .. name
    state[part .. " " .. name] = tensor:contiguous():bytes()
  end
end
table.sort(names)
for _, name in ipairs(names) do
  print(name, (state[name]:gsub(".", function(c) return ("%02x"):format(c:byte()) end)))
end
