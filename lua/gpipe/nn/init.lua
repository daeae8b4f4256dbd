-- lua/gpipe/nn/init.lua - `gp.nn`: the table of everything that models are built from.
--
-- One line for each name; the file that it comes from documents it.

local errors = require "gpipe.errors"
local activation = require "gpipe.nn.layer.activation.elementwise"
local alpha_dropout = require "gpipe.nn.layer.dropout.alpha"
local blocks = require "gpipe.nn.layer.shape.blocks"
local channel_dropout = require "gpipe.nn.layer.dropout.channels"
local distance = require "gpipe.nn.layer.distance"
local margin = require "gpipe.nn.loss.margin"
local batch_norm = require "gpipe.nn.layer.norm.batch_norm"
local bce = require "gpipe.nn.loss.bce"
local cells = require "gpipe.nn.sequence.cells"
local class = require "gpipe.nn.class"
local conv = require "gpipe.nn.layer.image.conv"
local conv_transpose = require "gpipe.nn.layer.image.conv_transpose"
local fold = require "gpipe.nn.layer.image.fold"
local huber = require "gpipe.nn.loss.huber"
local instance_norm = require "gpipe.nn.layer.norm.instance_norm"
local labels = require "gpipe.nn.loss.labels"
local lp_pool = require "gpipe.nn.layer.image.lp_pool"
local maxima = require "gpipe.nn.layer.image.maxima"
local namespace = require "gpipe.namespace"
local Module = require "gpipe.nn.module"
local parameter = require "gpipe.nn.parameter"
local declare = require "gpipe.nn.skip.declare"
local pad = require "gpipe.nn.layer.image.pad"
local pool = require "gpipe.nn.layer.image.pool"
local recurrent = require "gpipe.nn.sequence.recurrent"
local volume_pool = require "gpipe.nn.layer.image.volume_pool"
local scope = require "gpipe.nn.scope"
local skip = require "gpipe.nn.skip.layers"
local softmax = require "gpipe.nn.layer.activation.softmax"
local transformer = require "gpipe.nn.sequence.transformer"

local nn = {
  Module = Module,
  Sequential = require "gpipe.nn.sequential",
  Parameter = parameter.Parameter,
  Buffer = parameter.Buffer,
  init = require "gpipe.nn.fill",

  Linear = require "gpipe.nn.layer.linear",
  Conv1d = conv.Conv1d,
  Conv2d = conv.Conv2d,
  Conv3d = conv.Conv3d,
  ConvTranspose1d = conv_transpose.ConvTranspose1d,
  ConvTranspose2d = conv_transpose.ConvTranspose2d,
  ConvTranspose3d = conv_transpose.ConvTranspose3d,
  MaxPool1d = pool.MaxPool1d,
  MaxPool2d = pool.MaxPool2d,
  MaxPool3d = volume_pool.MaxPool3d,
  MaxUnpool1d = maxima.MaxUnpool1d,
  MaxUnpool2d = maxima.MaxUnpool2d,
  LPPool1d = lp_pool.LPPool1d,
  LPPool2d = lp_pool.LPPool2d,
  AvgPool3d = volume_pool.AvgPool3d,
  AdaptiveAvgPool3d = volume_pool.AdaptiveAvgPool3d,
  AdaptiveMaxPool3d = volume_pool.AdaptiveMaxPool3d,
  AvgPool1d = pool.AvgPool1d,
  AvgPool2d = pool.AvgPool2d,
  AdaptiveAvgPool1d = pool.AdaptiveAvgPool1d,
  AdaptiveAvgPool2d = pool.AdaptiveAvgPool2d,
  AdaptiveMaxPool1d = pool.AdaptiveMaxPool1d,
  AdaptiveMaxPool2d = pool.AdaptiveMaxPool2d,
  Upsample = require "gpipe.nn.layer.image.upsample",
  Unfold = fold.Unfold,
  Fold = fold.Fold,
  ZeroPad2d = pad.ZeroPad2d,
  ReflectionPad2d = pad.ReflectionPad2d,
  ConstantPad3d = pad.ConstantPad3d,
  ZeroPad3d = pad.ZeroPad3d,
  ReflectionPad3d = pad.ReflectionPad3d,
  ReplicationPad3d = pad.ReplicationPad3d,
  CircularPad1d = pad.CircularPad1d,
  CircularPad3d = pad.CircularPad3d,
  ConstantPad1d = pad.ConstantPad1d,
  ConstantPad2d = pad.ConstantPad2d,
  ZeroPad1d = pad.ZeroPad1d,
  ReflectionPad1d = pad.ReflectionPad1d,
  ReplicationPad1d = pad.ReplicationPad1d,
  ReplicationPad2d = pad.ReplicationPad2d,
  CircularPad2d = pad.CircularPad2d,
  Embedding = require "gpipe.nn.layer.embedding",
  EmbeddingBag = require "gpipe.nn.layer.embedding_bag",
  Bilinear = require "gpipe.nn.layer.bilinear",
  CosineSimilarity = distance.CosineSimilarity,
  PairwiseDistance = distance.PairwiseDistance,
  LocalResponseNorm = require "gpipe.nn.layer.norm.local_response_norm",
  LayerNorm = require "gpipe.nn.layer.norm.layer_norm",
  RMSNorm = require "gpipe.nn.layer.norm.rms_norm",
  BatchNorm1d = batch_norm.BatchNorm1d,
  BatchNorm2d = batch_norm.BatchNorm2d,
  BatchNorm3d = batch_norm.BatchNorm3d,
  InstanceNorm1d = instance_norm.InstanceNorm1d,
  InstanceNorm2d = instance_norm.InstanceNorm2d,
  InstanceNorm3d = instance_norm.InstanceNorm3d,
  GroupNorm = require "gpipe.nn.layer.norm.group_norm",
  CausalSelfAttention = require "gpipe.nn.layer.attention",
  MultiheadAttention = require "gpipe.nn.sequence.multihead",
  TransformerEncoderLayer = transformer.TransformerEncoderLayer,
  TransformerDecoderLayer = transformer.TransformerDecoderLayer,
  TransformerEncoder = transformer.TransformerEncoder,
  TransformerDecoder = transformer.TransformerDecoder,
  Transformer = require "gpipe.nn.sequence.encoder_decoder",
  LSTM = recurrent.LSTM,
  GRU = recurrent.GRU,
  RNN = recurrent.RNN,
  LSTMCell = cells.LSTMCell,
  GRUCell = cells.GRUCell,
  RNNCell = cells.RNNCell,
  Dropout = require "gpipe.nn.layer.dropout",
  Dropout1d = channel_dropout.Dropout1d,
  Dropout2d = channel_dropout.Dropout2d,
  Dropout3d = channel_dropout.Dropout3d,
  AlphaDropout = alpha_dropout.AlphaDropout,
  FeatureAlphaDropout = alpha_dropout.FeatureAlphaDropout,
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
  Mish = activation.Mish,
  SELU = activation.SELU,
  CELU = activation.CELU,
  Hardtanh = activation.Hardtanh,
  Threshold = activation.Threshold,
  LogSigmoid = activation.LogSigmoid,
  Softsign = activation.Softsign,
  Tanhshrink = activation.Tanhshrink,
  Softshrink = activation.Softshrink,
  Hardshrink = activation.Hardshrink,
  PReLU = require "gpipe.nn.layer.activation.prelu",
  GLU = require "gpipe.nn.layer.activation.glu",
  Softmin = softmax.Softmin,
  Softmax2d = softmax.Softmax2d,
  RReLU = require "gpipe.nn.layer.activation.rrelu",
  Softmax = softmax.Softmax,
  LogSoftmax = softmax.LogSoftmax,
  Flatten = require "gpipe.nn.layer.shape.flatten",
  Unflatten = blocks.Unflatten,
  PixelShuffle = blocks.PixelShuffle,
  PixelUnshuffle = blocks.PixelUnshuffle,
  ChannelShuffle = blocks.ChannelShuffle,
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
  HingeEmbeddingLoss = margin.HingeEmbeddingLoss,
  SoftMarginLoss = margin.SoftMarginLoss,
  PoissonNLLLoss = margin.PoissonNLLLoss,
  MarginRankingLoss = margin.MarginRankingLoss,
  CosineEmbeddingLoss = margin.CosineEmbeddingLoss,
  TripletMarginLoss = margin.TripletMarginLoss,
  MultiMarginLoss = labels.MultiMarginLoss,
  MultiLabelMarginLoss = labels.MultiLabelMarginLoss,
  MultiLabelSoftMarginLoss = labels.MultiLabelSoftMarginLoss,
  GaussianNLLLoss = require "gpipe.nn.loss.gaussian",
  CTCLoss = require "gpipe.nn.loss.ctc",
}

--- Make a module class; calling it makes an instance and runs its `init`.
---
--- Parameters, buffers and modules assigned to `self` are found under the names they were assigned
--- to, also in plain tables (`self.blocks[i]` is "blocks.1", "blocks.2", ...). A class that
--- inherits calls its base's init itself: `Base.init(self, ...)`. With `stash` and `pop` a class
--- declares the skip connections that its forward begins and ends with self:stash(name, tensor) and
--- self:pop(name); gp.pipeline checks that they match before anything runs.
--- Errors: a name that is not a word; a base that is not a class.
--- ```lua
--- local Gate = nn.class("Gate")
--- function Gate:init(n) self.w = nn.Parameter({n}, nn.init.normal(0, 0.02)) end
--- function Gate:forward(x) return x * (x * self.w):sigmoid() end
--- local y = Gate(4)(gp.ones {2, 4})
--- ```
---@param name string the name in messages and printouts
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

--- The description of a module in error texts.
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

return namespace("gp.nn", nn, require "gpipe.nn.elsewhere")
