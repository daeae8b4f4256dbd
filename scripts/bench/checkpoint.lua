-- scripts/bench/checkpoint.lua - what saving costs: the pause of a save in the background beside one
-- copy of the state in memory, the time until it is on the disk, and the size of the files.

package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local figure = require "figure"
local flags = require "gpipe.flags"
local core = require "gpipe.core"
local gp = require "gpipe"
local nn, optim = gp.nn, gp.optim

local opt = flags.parse("Save parameters and moments in the background.", {
  { "--width N", 2048, "of eight layers of width x width" },
  { "--rounds N", 7, "saves; the median counts" },
}, arg)

local layers = {}
for i = 1, 8 do layers[i] = nn.Linear(opt.width, opt.width) end
local pipe <close> = gp.pipeline(nn.Sequential(layers), { devices = 2, loss = nn.MSELoss() })
local adam = optim.AdamW(pipe:parameters(), { lr = 1e-3 })
pipe:step(gp.ones { 2, opt.width }, gp.ones { 2, opt.width })
adam:step()

-- Makes as many tensors as the state has, of the same sizes.
local state, bytes = {}, 0
for _, entry in ipairs(pipe:parameters()) do
  for _ = 1, 3 do state[#state + 1] = gp.ones(entry.value.shape) end
  bytes = bytes + 3 * 4 * entry.value:numel()
end

local function copy()
  local copies = {}
  for i, tensor in ipairs(state) do copies[i] = tensor:clone() end
  return copies
end

local folder, saving = os.tmpname(), nil
os.remove(folder)

local function save()
  saving = gp.checkpoint.save(folder, { pipe = pipe, opt = adam, background = true })
end

local times = { copy = {}, pause = {}, whole = {} }
for i = 1, opt.rounds do
  collectgarbage()
  times.copy[i] = figure.seconds(copy)
  collectgarbage()
  times.pause[i] = figure.seconds(save)
  times.whole[i] = times.pause[i] + figure.seconds(function() assert(saving:finish()) end)
end

local size = 0
for _, name in ipairs(core.folder_names(folder)) do
  local file <close> = assert(io.open(folder .. "/" .. name, "rb"))
  size = size + file:seek "end"
end
assert(core.folder_remove(folder))

figure.print("checkpoint.state", bytes / 1e6, "MB")
figure.print("checkpoint.disk", bytes / figure.median(times.whole) / 1e9, "GB/s")
figure.print("checkpoint.pause", figure.median(figure.ratios(times.pause, times.copy)), "copies",
  "<=", 1.1)
figure.print("checkpoint.size", size / bytes, "of the state", "<=", 1.01)
