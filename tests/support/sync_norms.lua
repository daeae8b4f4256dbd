-- tests/support/sync_norms.lua - a script that trains models whose replicas normalise together, and
-- prints every bit that comes out: for one number of replicas and of micro-batches it has to print
-- the same, however the model is cut and whatever runs again.
--
--   gpipe-lua [--ranks N] sync_norms.lua REPLICAS CHUNKS STAGES CHECKPOINT SCHEDULE...
local gp = require "gpipe"
local runs = dofile "tests/support/replica_runs.lua"
local nn, Watch = gp.nn, runs.Watch

-- Eight layers each, with the options of their training.
local models = {
  -- a mini-batch that does not divide
  image = { rows = 30, shape = { 2, 4, 4 }, make = runs.residual },
  -- statistics of the whole mini-batch; a norm without statistics; one row in a micro-batch
  deferred = { rows = 8, shape = { 6 }, deferred = true, make = function()
    return nn.Sequential {
      nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 8),
      nn.BatchNorm1d(8, { track = false }), nn.Tanh(), nn.Linear(8, 8), nn.Linear(8, 4),
    }
  end },
  -- buffers of a user's layer; halves; dropout; a norm that is frozen
  watched = { rows = 24, shape = { 6 }, precision = "bf16", make = function()
    local frozen = nn.BatchNorm1d(8)
    frozen:eval()
    return nn.Sequential {
      nn.BatchNorm1d(6), nn.Linear(6, 8), Watch(8), nn.Dropout(0.2), nn.BatchNorm1d(8), frozen,
      nn.Tanh(), nn.Linear(8, 4),
    }
  end },
}

for i = 5, #arg do
  for _, kind in ipairs { "image", "deferred", "watched" } do
    for _, used in ipairs { true, false } do
      print("----", kind, used)
      runs.with_norms(models[kind], arg[i], used, { checkpoint = arg[4], sync_batch_norm = true })
    end
  end
end
