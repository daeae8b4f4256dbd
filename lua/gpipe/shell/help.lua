-- lua/gpipe/shell/help.lua - `help` in the interactive mode: says where to begin; help(x) explains
-- x.

local documentation = require "gpipe.shell.documentation"
local screen = require "gpipe.screen"

local text = [[
gp       tensors, data, files, pipelines; typed alone it lists its names, as nn and optim do
nn       layers and losses                    optim    optimizers
print(x) shows any value, typing it too; _ is the last one, _1 the first of the session
?gp.pipeline or help(x) explains a name or function      who() lists your globals
$ ls runs a command of the shell; _SLOW = 0.1 times what takes longer (1 second unless set)

  model = nn.Sequential {nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)}
  pipe = gp.pipeline(model, {balance = {2, 1}, chunks = 4, loss = nn.MSELoss()})
  opt = optim.Adam(pipe:parameters(), {lr = 0.01})
  x, y = gp.randn {32, 4}, gp.zeros {32, 2}
  for i = 1, 100 do loss = pipe:step(x, y) opt:step() end
  loss, pipe.stats
  print(pipe:draw())

Ctrl-C stops what runs or drops the line, Ctrl-D leaves. Documents: README.md and docs/ of gpipe-lua
(in share/doc/gpipe-lua of an installation).]]

return setmetatable({}, {
  __name = "help",
  __tostring = function() return screen.fold(text) end,
  __call = function(_, ...)
    if select("#", ...) == 0 then return print(screen.fold(text)) end
    print(screen.fold(documentation.of((...))))
  end,
})
