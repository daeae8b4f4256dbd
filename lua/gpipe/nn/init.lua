-- lua/gpipe/nn/init.lua - `gp.nn`: the table of everything that models are declared with.
--
-- One line a name; what each is, is in the file it comes from.

local errors = require "gpipe.errors"
local activation = require "gpipe.nn.layer.activation"
local batch_norm = require "gpipe.nn.layer.norm.batch_norm"
local bce = require "gpipe.nn.loss.bce"
local class = require "gpipe.nn.class"
local conv = require "gpipe.nn.layer.image.conv"
local huber = require "gpipe.nn.loss.huber"
local namespace = require "gpipe.namespace"
local Module = require "gpipe.nn.module"
local parameter = require "gpipe.nn.parameter"
local declare = require "gpipe.nn.skip.declare"
local pool = require "gpipe.nn.layer.image.pool"
local recurrent = require "gpipe.nn.sequence.recurrent"
local resize = require "gpipe.nn.layer.image.resize"
local scope = require "gpipe.nn.scope"
local skip = require "gpipe.nn.skip.layers"
local transformer = require "gpipe.nn.sequence.transformer"

local nn = {
  Module = Module,
  Sequential = require "gpipe.nn.sequential",
  Parameter = parameter.Parameter,
  Buffer = parameter.Buffer,
  init = require "gpipe.nn.initial",

  Linear = require "gpipe.nn.layer.linear",
  Conv1d = conv.Conv1d,
  Conv2d = conv.Conv2d,
  ConvTranspose2d = conv.ConvTranspose2d,
  MaxPool1d = pool.MaxPool1d,
  MaxPool2d = pool.MaxPool2d,
  AvgPool1d = pool.AvgPool1d,
  AvgPool2d = pool.AvgPool2d,
  AdaptiveAvgPool1d = pool.AdaptiveAvgPool1d,
  AdaptiveAvgPool2d = pool.AdaptiveAvgPool2d,
  AdaptiveMaxPool1d = pool.AdaptiveMaxPool1d,
  AdaptiveMaxPool2d = pool.AdaptiveMaxPool2d,
  Upsample = resize.Upsample,
  ZeroPad2d = resize.ZeroPad2d,
  ReflectionPad2d = resize.ReflectionPad2d,
  Embedding = require "gpipe.nn.layer.embedding",
  LayerNorm = require "gpipe.nn.layer.norm.layer_norm",
  RMSNorm = require "gpipe.nn.layer.norm.rms_norm",
  BatchNorm1d = batch_norm.BatchNorm1d,
  BatchNorm2d = batch_norm.BatchNorm2d,
  InstanceNorm2d = batch_norm.InstanceNorm2d,
  GroupNorm = require "gpipe.nn.layer.norm.group_norm",
  CausalSelfAttention = require "gpipe.nn.layer.attention",
  MultiheadAttention = require "gpipe.nn.sequence.multihead",
  TransformerEncoderLayer = transformer.TransformerEncoderLayer,
  TransformerDecoderLayer = transformer.TransformerDecoderLayer,
  TransformerEncoder = transformer.TransformerEncoder,
  TransformerDecoder = transformer.TransformerDecoder,
  LSTM = recurrent.LSTM,
  GRU = recurrent.GRU,
  RNN = recurrent.RNN,
  Dropout = require "gpipe.nn.layer.dropout",
  Dropout2d = require "gpipe.nn.layer.dropout2d",
  ReLU = activation.ReLU,
  GELU = activation.GELU,
  SiLU = activation.SiLU,
  Tanh = activation.Tanh,
  Sigmoid = activation.Sigmoid,
  ReLU6 = activation.ReLU6,
  LeakyReLU = activation.LeakyReLU,
  ELU = activation.ELU,
  Softplus = activation.Softplus,
  Hardsigmoid = activation.Hardsigmoid,
  Hardswish = activation.Hardswish,
  Softmax = require "gpipe.nn.layer.softmax",
  LogSoftmax = require "gpipe.nn.layer.log_softmax",
  Flatten = require "gpipe.nn.layer.shape.flatten",
  Reshape = require "gpipe.nn.layer.shape.reshape",
  Permute = require "gpipe.nn.layer.shape.permute",
  Identity = require "gpipe.nn.layer.shape.identity",
  Lambda = require "gpipe.nn.layer.lambda",

  Residual = require "gpipe.nn.container.residual",
  Concat = require "gpipe.nn.container.concat",
  Sum = require "gpipe.nn.container.sum",
  Parallel = require "gpipe.nn.container.parallel",
  Stash = skip.Stash,
  Pop = skip.Pop,
  namespace = require "gpipe.nn.skip.namespace".new,

  Loss = require "gpipe.nn.loss.loss",
  CrossEntropyLoss = require "gpipe.nn.loss.cross_entropy",
  NLLLoss = require "gpipe.nn.loss.nll",
  MSELoss = require "gpipe.nn.loss.mse",
  L1Loss = require "gpipe.nn.loss.l1",
  SmoothL1Loss = huber.SmoothL1Loss,
  HuberLoss = huber.HuberLoss,
  BCELoss = bce.BCELoss,
  BCEWithLogitsLoss = bce.BCEWithLogitsLoss,
  KLDivLoss = require "gpipe.nn.loss.kl_div",
}

--- Make a module class; calling it makes an instance and runs its `init`.
---
--- Parameters, buffers and modules assigned to `self` are found under the names they were assigned
--- to, also in plain tables (`self.blocks[i]` is "blocks.1", "blocks.2", ...). A class that
--- inherits calls its base's init itself: `Base.init(self, ...)`.
--- Errors: a name that is no word; a base that is no class.
--- ```lua
--- local Gate = nn.class("Gate")
--- function Gate:init(n) self.w = nn.Parameter({n}, nn.init.normal(0, 0.02)) end
--- function Gate:forward(x) return x * (x * self.w):sigmoid() end
--- local y = Gate(4)(gp.ones {2, 4})
--- ```
---@param name string what messages and printouts call it
--- With `stash` and `pop` it declares the skip connections that its forward begins and ends with
--- self:stash(name, tensor) and self:pop(name): gp.pipeline checks that they match before anything
--- runs.
---@param base? table a class; nn.Module
---@param opts? {stash?: string[], pop?: string[]}
---@return table class
function nn.class(name, base, opts)
  if type(name) ~= "string" or name == "" then
    errors.raise('nn.class: name is %s, expected a word such as "Gate"', errors.show(name))
  end
  if base ~= nil and not class.info(base) then
    errors.raise("nn.class: base is %s, expected a module class", errors.show(base))
  end
  local made = class.new(name, base or Module)
  if opts ~= nil then declare.class(class.info(made), opts) end
  return made
end

--- What a module is, in the words of error texts.
--- ```lua
--- assert(nn.describe(nn.Linear(4, 8)) == "Linear 4 -> 8")
--- ```
---@param module nn.Module
---@return string
nn.describe = scope.describe

--- Whether a value is a module (an instance of a module class).
--- ```lua
--- assert(nn.is_module(nn.ReLU()) and not nn.is_module(nn.ReLU))
--- ```
---@param value any
---@return boolean
function nn.is_module(value) return class.of(value) ~= nil end

return namespace("gp.nn", nn)
