-- lua/gpipe/nn/elsewhere.lua - says what replaces those names of torch.nn that have no direct
-- counterpart here.

local ways = {}

local WAYS = {
  { "functional", "modules are functions, nn.CrossEntropyLoss()(a, b), and tensors have methods, "
    .. "x:relu()" },
  { "ModuleList ModuleDict ParameterList ParameterDict Container",
    "a plain table does: self.blocks = {a, b}, self.heads = {left = a}; its modules and parameters "
    .. "are found" },
  { "SyncBatchNorm", "sync_batch_norm = true of gp.pipeline lets replicas normalise together; "
    .. "deferred_batch_norm = true takes the running statistics of all micro-batches" },
  { "DataParallel DistributedDataParallel parallel", "gp.pipeline spreads a model over devices" },
  { "utils parametrizations parametrize weight_norm spectral_norm",
    "a class with its own parameters computes the weight in forward, w = v * (g / v:norm(2, 2, "
    .. "true)); clipping is optim.clip_grad_norm" },
  { "UpsamplingNearest2d", "nn.Upsample {scale = 2}" },
  { "UpsamplingBilinear2d", 'nn.Upsample {scale = 2, mode = "bilinear", align_corners = true}' },
  { "interpolate", 'nn.Upsample {scale = 2, mode = "bilinear"}(x)' },
  { "LSTMBase GRUBase RNNBase PackedSequence pack_padded_sequence pad_packed_sequence",
    "nn.LSTM, nn.GRU and nn.RNN take lengths: lstm(x, lengths)" },
  { "MaxUnpool3d FractionalMaxPool2d FractionalMaxPool3d LPPool3d",
    "nn.Lambda(function(x) ... end) can compute it; nn.MaxUnpool2d, nn.AdaptiveMaxPool2d and "
    .. "nn.LPPool2d are there" },
  { "LazyLinear LazyConv1d LazyConv2d LazyConv3d LazyBatchNorm1d LazyBatchNorm2d",
    "sizes are arguments; model:summary(shape) shows what goes into each layer" },
}

for _, way in ipairs(WAYS) do
  for word in way[1]:gmatch "%S+" do ways[word] = way[2] end
end

return ways
