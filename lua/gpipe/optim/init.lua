-- gpipe/optim/init.lua - `gp.optim`: optimizers, learning-rate schedules, clipping of gradients.
--
-- Most optimizers consist of option checks and names; the updates are fused passes in C over the
-- arenas of each stage, on the stage's device. Optimizers that work on whole matrices are in
-- whole/. The formulas and their order of operations are PyTorch's.

local adadelta = require "gpipe.optim.adadelta"
local adafactor = require "gpipe.optim.whole.adafactor"
local adagrad = require "gpipe.optim.adagrad"
local adam = require "gpipe.optim.adam"
local clip = require "gpipe.optim.clip"
local lbfgs = require "gpipe.optim.lbfgs"
local lion = require "gpipe.optim.lion"
local namespace = require "gpipe.namespace"
local muon = require "gpipe.optim.whole.muon"
local nadam = require "gpipe.optim.nadam"
local radam = require "gpipe.optim.radam"
local rmsprop = require "gpipe.optim.rmsprop"
local rprop = require "gpipe.optim.rprop"
local schedule = require "gpipe.optim.schedule"
local sgd = require "gpipe.optim.sgd"

return namespace("gp.optim", {
  SGD = sgd.SGD,
  Adam = adam.Adam,
  AdamW = adam.AdamW,
  Adamax = adam.Adamax,
  NAdam = nadam.NAdam,
  Adadelta = adadelta.Adadelta,
  RAdam = radam.RAdam,
  Rprop = rprop.Rprop,
  RMSprop = rmsprop.RMSprop,
  Adagrad = adagrad.Adagrad,
  Lion = lion.Lion,
  Muon = muon,
  Adafactor = adafactor,
  LBFGS = lbfgs,
  schedule = schedule,
  clip_grad_norm = clip.clip_grad_norm,
  clip_grad_value = clip.clip_grad_value,
})
