-- lua/gpipe/train/init.lua - `gp.train`: parts that a training loop calls.
--
-- The loop belongs to the script. Parts with a memory have `state()` and `restore(state)`, so that
-- gp.run's checkpoints save it (`gp.run(name, {state = {ema = ema, stop = stop}})`) and the next
-- steps have the same bits.

local namespace = require "gpipe.namespace"

return namespace("gp.train", {
  accumulate = require("gpipe.train.accumulate").new,
  best = require("gpipe.train.best").new,
  divergence = require("gpipe.train.divergence").new,
  early_stopping = require("gpipe.train.early_stopping").new,
  ema = require("gpipe.train.ema").new,
  events = require("gpipe.train.events").new,
  every = require("gpipe.train.every").new,
  smooth = require("gpipe.train.smooth").new,
})
