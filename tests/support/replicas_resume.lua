-- tests/support/replicas_resume.lua - trains a step with replicas, from the checkpoint in a folder
-- if it has one, and saves another one there; of a stream three steps, which the checkpoint ends.
--
--   gpipe-lua [--ranks N] replicas_resume.lua FOLDER STEP REPLICAS CHUNKS STAGES [sync|stream]
local gp = require "gpipe"
local nn, optim = gp.nn, gp.optim

local folder, step = arg[1], math.tointeger(tonumber(arg[2]))
local replicas, chunks = math.tointeger(tonumber(arg[3])), math.tointeger(tonumber(arg[4]))
local stages = math.tointeger(tonumber(arg[5]))

gp.seed(5)
local streams = arg[6] == "stream"
local model = nn.Sequential {
  nn.Linear(6, 16), nn.Tanh(), nn.Dropout(0.2), nn.Linear(16, 16), nn.LayerNorm(16),
  streams and nn.ReLU() or nn.BatchNorm1d(16), nn.Linear(16, 4),
}
local pipe <close> = gp.pipeline(model, {
  devices = stages * replicas, chunks = chunks, replicas = replicas, loss = nn.CrossEntropyLoss(),
  sync_batch_norm = arg[6] == "sync", schedule = streams and "pipedream_2bw" or "1f1b",
})
local opt = optim.AdamW(pipe:parameters(), { lr = 0.01 })
pipe:use(opt, not streams and { clip_norm = 0.5 } or nil)
local from = ("%s/%d"):format(folder, step - 1)
if step > 1 then assert(gp.checkpoint.load(from, { pipe = pipe, opt = opt })) end
local losses = {}
for part = 1, streams and 3 or 1 do
  local told = pipe:step(gp.randn({ 24, 6 }, { seed = step * part }),
    gp.randint(0, 4, { 24 }, { seed = 100 + step * part }))
  for _, loss in ipairs(streams and told or { told }) do losses[#losses + 1] = loss end
end
for _, loss in ipairs(streams and pipe:flush() or {}) do losses[#losses + 1] = loss end
assert(gp.checkpoint.save(("%s/%d"):format(folder, step), { pipe = pipe, opt = opt }))
for _, loss in ipairs(losses) do print(step, ("%.17g"):format(loss)) end

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
