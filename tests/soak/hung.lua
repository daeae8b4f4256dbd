-- tests/soak/hung.lua CASE - the job over several ranks that tests/soak/hangs lets hang. Each rank
-- prints the seconds from its first steps to the error, the time of day, and the error.
local gp = require "gpipe"
local seconds = require("gpipe.core").seconds
local nn = gp.nn

local function model()
  return nn.Sequential {
    nn.Linear(8, 16), nn.Stash "a", nn.Tanh(), nn.Dropout(0.1), nn.Linear(16, 16), nn.Tanh(),
    nn.Pop("a", "add"), nn.Linear(16, 4),
  }
end

local CASES = {
  ["1f1b"] = { schedule = "1f1b", devices = 3 },
  zb_h1 = { schedule = "zb_h1", devices = 3, checkpoint = "always" },
  replicas = { schedule = "1f1b", devices = 4, replicas = 2 },
  stream = { schedule = "pipedream_2bw", devices = 4, replicas = 2 },
  chimera = { schedule = "chimera", devices = 2 },
  hosts = { schedule = "1f1b", devices = 2 },
}

local opts = assert(CASES[arg[1]], "the case has a wrong name")
opts.chunks, opts.loss, opts.watchdog = 4, nn.CrossEntropyLoss(), 2
local pipe = gp.pipeline(model(), opts)
pipe:use(gp.optim.AdamW(pipe:parameters(), { lr = 1e-2 }))
local x, y = gp.randn { 32, 8 }, gp.randint(0, 4, { 32 })
for _ = 1, 3 do pipe:step(x, y) end
local began = seconds()
local _, message = pcall(function() while true do pipe:step(x, y) end end)
io.stderr:write(("%.2f %d %s\n"):format(seconds() - began, os.time(), tostring(message)))
os.exit(0)
