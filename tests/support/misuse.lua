-- tests/support/misuse.lua - the small token model of the specs about mistakes.

local gp = require "gpipe"
local nn = gp.nn

local misuse = {}

-- Makes three layers, or four with `middle` in the middle.
function misuse.model(middle)
  gp.seed(1)
  local layers = { nn.Embedding(11, 4), nn.Linear(4, 4) }
  layers[#layers + 1] = middle
  layers[#layers + 1] = { "head", nn.Linear(4, 11) }
  return nn.Sequential(layers)
end

function misuse.ids(rows)
  local list = {}
  for i = 1, rows do list[i] = { i % 11, (i + 3) % 11, (2 * i) % 11 } end
  return gp.tensor(list, { dtype = "i64" })
end

-- Opens a pipeline over two stages, with options of the caller.
function misuse.pipe_of(options, of)
  local merged = { balance = { 2, 1 }, chunks = 2, loss = nn.CrossEntropyLoss() }
  for key, value in pairs(options or {}) do merged[key] = value end
  return gp.pipeline(of or misuse.model(), merged)
end

return misuse
