-- tests/support/replicas_norms.lua - a script that trains models whose forward passes write buffers,
-- with replicas, and prints every bit that comes out: for one number of micro-batches of all
-- replicas together it has to print the same.
--
--   gpipe-lua [--ranks N] tests/support/replicas_norms.lua REPLICAS CHUNKS STAGES SCHEDULE...
local gp = require "gpipe"
local runs = dofile "tests/support/replica_runs.lua"
local nn, Watch = gp.nn, runs.Watch

-- Eight layers each, with the options of their training.
local models = {
  image = { rows = 30, shape = { 2, 4, 4 }, make = runs.residual },
  -- statistics of the whole mini-batch; a mini-batch that does not divide
  deferred = { rows = 21, shape = { 6 }, deferred = true, make = function()
    return nn.Sequential {
      nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 8),
      nn.BatchNorm1d(8, { momentum = false }), nn.Tanh(), nn.Linear(8, 8), nn.Linear(8, 4),
    }
  end },
  -- buffers of a user's layer; a dtype of its own; dropout
  watched = { rows = 24, shape = { 6 }, precision = "bf16", make = function()
    return nn.Sequential {
      nn.Linear(6, 8), Watch(8), nn.Dropout(0.2), nn.BatchNorm1d(8), Watch(8), nn.Tanh(),
      nn.Linear(8, 8), nn.Linear(8, 4),
    }
  end },
  -- the last replicas have no micro-batches
  few = { rows = 5, shape = { 2, 4, 4 }, make = function()
    return nn.Sequential {
      nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4),
      nn.ReLU(), nn.Flatten(), nn.Linear(16, 4),
    }
  end },
}

-- Two copies of the weights need whole blocks of the tree of sums.
for i = 4, #arg do
  for _, kind in ipairs { "image", "deferred", "watched", arg[i] ~= "dualpipe" and "few" or nil } do
    for _, used in ipairs { true, false } do
      print("----", kind, arg[i], used)
      runs.with_norms(models[kind], arg[i], used)
    end
  end
end
