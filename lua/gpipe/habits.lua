-- lua/gpipe/habits.lua - names that people bring from PyTorch and NumPy, and what does the same
-- here.
--
-- Spelling alone would mislead: `t` is nearer to `gt` than to `transpose`. Of several names the
-- first one that exists where the word was used is suggested.

return {
  -- tensors
  T = { "transpose" }, mT = { "transpose" }, swapaxes = { "transpose" },
  concatenate = { "concat" }, hstack = { "concat" }, vstack = { "concat" },
  broadcast_to = { "expand" },
  ravel = { "reshape" }, view_as = { "reshape" }, resize = { "reshape" },
  mm = { "matmul" }, bmm = { "matmul" }, linear = { "matmul" },
  multiply = { "mul" }, divide = { "div" }, subtract = { "sub" }, negative = { "neg" },
  average = { "mean" }, amax = { "max" }, size = { "shape", "size" }, ndim = { "dim" },
  tolist = { "totable" }, numpy = { "totable" }, astype = { "to" }, type = { "dtype" },
  cuda = { "to" }, cpu = { "to" }, copy = { "clone" },
  slice = { "narrow" },
  clip = { "clamp" }, clip_ = { "clamp_" }, absolute = { "abs" }, fmax = { "maximum" },
  fmin = { "minimum" }, rint = { "round" },
  -- gp
  from_numpy = { "tensor" }, array = { "tensor" }, manual_seed = { "seed" }, range = { "arange" },
  normal = { "randn" }, uniform = { "rand" }, empty = { "zeros" }, Pipeline = { "pipeline" },
  -- pipelines, optimizers, data
  fit = { "step" }, train_step = { "step" }, predict = { "forward" }, learning_rate = { "lr" },
  wd = { "weight_decay" }, random_split = { "split" }, loader = { "batches" },
  -- layers
  Swish = { "SiLU" }, View = { "Reshape" }, Dense = { "Linear" },
  MultiHeadAttention = { "MultiheadAttention" }, num_layers = { "layers" },
  nhead = { "heads" }, is_causal = { "causal" },
  num_kv_heads = { "kv_heads" }, rope = { "rotary" },
  -- dtypes
  float = { "f32" }, float32 = { "f32" }, single = { "f32" }, float64 = { "f64" },
  double = { "f64" }, float16 = { "f16" }, half = { "f16" }, bfloat16 = { "bf16" },
  long = { "i64" }, int64 = { "i64" },
  int = { "i32" }, int32 = { "i32" }, uint8 = { "u8" }, byte = { "u8" }, boolean = { "bool" },
}
