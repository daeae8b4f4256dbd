-- lua/gpipe/nn/layer/norm/batch_norm.lua - `nn.BatchNorm1d`, `nn.BatchNorm2d`, `nn.BatchNorm3d`:
-- normalise channels by the statistics of a batch, in evaluation by running statistics.
--
-- Source: Ioffe, Szegedy, "Batch normalization" (2015). Names, defaults and behaviour are
-- PyTorch's.

local Module = require "gpipe.nn.module"
local channels = require "gpipe.nn.layer.norm.channels"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local errors = require "gpipe.errors"
local options = require "gpipe.options"
local running = require "gpipe.nn.layer.norm.running"
local scope = require "gpipe.nn.scope"
local synced = require "gpipe.nn.layer.norm.synced"

local batch_norm = {}

local function rules(affine, track)
  return {
    eps = { type = "number", default = 1e-5, above = 0 },
    momentum = {
      type = { "number", "boolean" }, default = 0.1, min = 0, max = 1,
      check = function(v) return v == true and "a number from 0 to 1, or false" or nil end,
    },
    affine = { type = "boolean", default = affine },
    track = { type = "boolean", default = track },
    dtype = { choices = { "f32", "f64" }, default = "f32" },
  }
end

local BATCH = rules(true, true)

---@class nn.BatchNormOptions
---@field eps? number added to the variance; 1e-5
---@field momentum? number|false share of the newest statistics in the running ones, 0.1; false: the
--- mean of all so far
---@field affine? boolean weight and bias
---@field track? boolean keep running statistics, for evaluation
---@field dtype? "f32"|"f64"

local function set_up(self, who, n, opts, spec)
  opts = options.check(who, opts, spec)
  self.channels = check.size(who, "n", n)
  self.eps, self.momentum, self.track = opts.eps, opts.momentum, opts.track
  channels.declare(self, opts)
  if opts.track then running.declare(self, opts.dtype) end
end

local function describe(self) return tostring(self.channels) end

-- Normalise by the statistics of this batch, and update the running ones; or, in evaluation, by the
-- running statistics.
local function forward(self, x, image, samples)
  if self.track and not self:is_training() then
    local mean, variance = running.get(self)
    return channels.normalise(self, x, image, mean, variance, true)
  end
  local replicas = self:is_training() and not samples and synced.replicas() or 1
  if replicas > 1 then return synced.forward(self, x, image, replicas) end
  local mean, variance, rows = channels.stats(image, samples, self.channels)
  if rows == 1 and self:is_training() then
    errors.raise("%s: input is %s, one value per channel, expected more than one to train on",
      scope.label(self), check.shape_text(x.shape))
  end
  if self.track then running.note(self, mean, variance, rows) end
  return channels.normalise(self, x, image, mean, variance)
end

-- ---- BatchNorm1d -----------------------------------------------------------------------------

---@class nn.BatchNorm1d: nn.Module
---@field weight? gpipe.Tensor [n]
---@field bias? gpipe.Tensor [n]
---@field running_mean? gpipe.Tensor [n]
---@field running_var? gpipe.Tensor [n], unbiased
---@field num_batches_tracked? gpipe.Tensor scalar, i64
local BatchNorm1d = class.new("BatchNorm1d", Module, true)
BatchNorm1d.defers = true

--- Normalise each feature over the batch (and over the sequence) to mean 0 and variance 1, then
--- scale and shift. In evaluation the running statistics are used.
---
--- Shapes: [N, n] or [N, n, L], the same out. Training moves running_mean and running_var (the
--- unbiased variance) by `momentum` towards the statistics of each batch. In a pipeline a batch is
--- each micro-batch in order or, with deferred_batch_norm, the mini-batch; with sync_batch_norm
--- it is the micro-batches of one number in all replicas.
--- Errors: n that is not a positive integer; when called, another number of features, or a single
--- value per feature in training.
--- Source: PyTorch nn.BatchNorm1d.
--- ```lua
--- local layer = nn.BatchNorm1d(4)
--- local y = layer(gp.randn {8, 4})
--- assert(layer.num_batches_tracked:value():item() == 1)
--- ```
---@param n integer features
---@param opts? nn.BatchNormOptions
function BatchNorm1d:init(n, opts) set_up(self, "nn.BatchNorm1d", n, opts, BATCH) end

function BatchNorm1d:forward(x) return forward(self, x, channels.image(self, x, 2, 3), false) end

BatchNorm1d.describe = describe

-- ---- BatchNorm2d -----------------------------------------------------------------------------

---@class nn.BatchNorm2d: nn.Module
---@field weight? gpipe.Tensor [n]
---@field bias? gpipe.Tensor [n]
---@field running_mean? gpipe.Tensor [n]
---@field running_var? gpipe.Tensor [n], unbiased
---@field num_batches_tracked? gpipe.Tensor scalar, i64
local BatchNorm2d = class.new("BatchNorm2d", Module, true)
BatchNorm2d.defers = true

--- Normalise each channel over batch, height and width, then scale and shift. In evaluation the
--- running statistics are used.
---
--- Shapes: [N, n, H, W], the same out. Running statistics and errors: those of nn.BatchNorm1d.
--- Source: PyTorch nn.BatchNorm2d.
--- ```lua
--- local layer = nn.BatchNorm2d(3, {momentum = 0.2})
--- local y = layer(gp.randn {2, 3, 4, 4})
--- layer:eval()
--- ```
---@param n integer channels
---@param opts? nn.BatchNormOptions
function BatchNorm2d:init(n, opts) set_up(self, "nn.BatchNorm2d", n, opts, BATCH) end

function BatchNorm2d:forward(x) return forward(self, x, channels.image(self, x, 4, 4), false) end

BatchNorm2d.describe = describe

-- ---- BatchNorm3d -----------------------------------------------------------------------------

---@class nn.BatchNorm3d: nn.Module
---@field weight? gpipe.Tensor [n]
---@field bias? gpipe.Tensor [n]
---@field running_mean? gpipe.Tensor [n]
---@field running_var? gpipe.Tensor [n], unbiased
---@field num_batches_tracked? gpipe.Tensor scalar, i64
local BatchNorm3d = class.new("BatchNorm3d", Module, true)
BatchNorm3d.defers = true

--- nn.BatchNorm2d for volumes: [N, n, D, H, W], the same out. Source: PyTorch nn.BatchNorm3d.
--- ```lua
--- local y = nn.BatchNorm3d(3)(gp.randn {2, 3, 2, 4, 4})
--- ```
---@param n integer channels
---@param opts? nn.BatchNormOptions
function BatchNorm3d:init(n, opts) set_up(self, "nn.BatchNorm3d", n, opts, BATCH) end

function BatchNorm3d:forward(x) return forward(self, x, channels.image(self, x, 5, 5), false) end

BatchNorm3d.describe = describe

batch_norm.set_up, batch_norm.forward, batch_norm.describe = set_up, forward, describe
batch_norm.rules = rules
batch_norm.BatchNorm1d, batch_norm.BatchNorm2d = BatchNorm1d, BatchNorm2d
batch_norm.BatchNorm3d = BatchNorm3d
return batch_norm
