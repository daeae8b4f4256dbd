-- lua/gpipe/habits.lua - names that people know from PyTorch and NumPy, and their counterparts
-- here.
--
-- Spelling alone would mislead: `t` is nearer to `gt` than to `transpose`. If a name has several
-- counterparts, the first one that exists where the word was used is suggested.

return {
  -- tensors
  T = { "transpose" }, mT = { "transpose" }, swapaxes = { "transpose" },
  concatenate = { "concat" },
  broadcast_to = { "expand" },
  resize = { "reshape" },
  linear = { "matmul" },
  multiply = { "mul" }, divide = { "div" }, subtract = { "sub" }, negative = { "neg" },
  average = { "mean" }, size = { "shape", "size" }, ndim = { "dim" },
  tolist = { "totable" }, numpy = { "totable" }, astype = { "to" }, type = { "dtype" },
  cuda = { "to" }, cpu = { "to" }, copy = { "clone" },
  slice = { "narrow" }, swapdims = { "transpose" }, moveaxis = { "movedim" },
  ger = { "outer" }, trapz = { "trapezoid" },
  mod = { "remainder" }, fix = { "trunc" }, percentile = { "quantile" },
  logsigmoid = { "log_sigmoid" },
  histogram = { "histc" },
  scatter_ = { "scatter" },
  true_divide = { "div" }, greater = { "gt" }, less = { "lt" },
  not_equal = { "ne" }, less_equal = { "le" }, greater_equal = { "ge" },
  data_ptr = { "bytes" },
  random_ = { "uniform_" }, nelement = { "numel" }, ndimension = { "dim" },
  clip = { "clamp" }, clip_ = { "clamp_" }, absolute = { "abs" },
  arcsin = { "asin" }, arccos = { "acos" }, arctan = { "atan" }, arctan2 = { "atan2" },
  arcsinh = { "asinh" }, arccosh = { "acosh" }, arctanh = { "atanh" },
  rint = { "round" },
  -- gp
  from_numpy = { "tensor" }, array = { "tensor" }, manual_seed = { "seed" }, range = { "arange" },
  normal = { "randn" }, uniform = { "rand" }, empty = { "zeros" }, Pipeline = { "pipeline" },
  empty_like = { "zeros_like" }, scalar_tensor = { "tensor" }, as_tensor = { "tensor" },
  -- pipelines, optimizers, data
  param_groups = { "groups" }, initial_lr = { "lr" }, gamma = { "factor" }, max_lr = { "max" },
  total_steps = { "steps" }, T_max = { "steps" },
  eta_min = { "min" }, min_lr = { "min" }, pct_start = { "rise" }, anneal_strategy = { "shape" },
  three_phase = { "three_phases" }, step_size = { "every" }, num_warmup_steps = { "warmup" },
  ReduceLROnPlateau = { "plateau" }, OneCycleLR = { "one_cycle" },
  ExponentialLR = { "exponential" },
  CosineAnnealingLR = { "cosine" }, StepLR = { "step" }, LinearLR = { "linear" },
  clip_grad_norm_ = { "clip_grad_norm" }, clip_grad_value_ = { "clip_grad_value" },
  fit = { "step" }, train_step = { "step" }, predict = { "forward" }, learning_rate = { "lr" },
  wd = { "weight_decay" }, random_split = { "split" }, loader = { "batches" },
  num_workers = { "workers" }, prefetch_factor = { "prefetch" }, batch_size = { "batch" },
  num_samples = { "count" }, padding_value = { "pad" },
  -- layers
  calculate_gain = { "gain" },
  UpsamplingNearest2d = { "Upsample" }, UpsamplingBilinear2d = { "Upsample" },
  LSTMCell = { "LSTM" }, GRUCell = { "GRU" }, Softmax2d = { "Softmax" }, scale_factor = { "scale" },
  Dropout3d = { "Dropout2d" }, TransformerEncoderBlock = { "TransformerEncoderLayer" },
  Swish = { "SiLU" }, View = { "Reshape" }, Dense = { "Linear" },
  MultiHeadAttention = { "MultiheadAttention" }, num_layers = { "layers" },
  nhead = { "heads" }, is_causal = { "causal" },
  num_kv_heads = { "kv_heads" }, rope = { "rotary" },
  -- dtypes
  float = { "f32", "to" }, float32 = { "f32" }, single = { "f32" }, float64 = { "f64" },
  double = { "f64", "to" }, float16 = { "f16" }, half = { "f16", "to" },
  bfloat16 = { "bf16", "to" },
  long = { "i64", "to" }, int64 = { "i64" },
  int = { "i32", "to" }, int32 = { "i32" }, uint8 = { "u8" }, byte = { "u8" }, boolean = { "bool" },
}
