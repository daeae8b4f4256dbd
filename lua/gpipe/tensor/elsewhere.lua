-- lua/gpipe/tensor/elsewhere.lua - says what replaces those names of tensors and functions in
-- PyTorch, NumPy and Torch7 that have no direct counterpart here.

local ways = {}

local WAYS = {
  -- dtypes and devices
  { "float double half bfloat16 long int short byte char bool type_as",
    't:to "f32"; dtypes are f32, f64, bf16, f16, i64, i32, u8 and bool' },
  { "FloatTensor DoubleTensor LongTensor IntTensor ByteTensor Tensor",
    'gp.zeros(shape, {dtype = "f32"}), gp.tensor(list)' },
  { "set_default_dtype get_default_dtype setdefaulttensortype",
    "dtype is an option of what makes tensors, precision one of gp.pipeline" },
  { "enable_grad set_grad_enabled inference_mode", "gp.no_grad(fn, ...)" },
  { "autograd", "t:backward(), gp.grad(fn), gp.gradcheck(fn, inputs)" },
  { "jit script", "gp.compile(fn, example_inputs)" },
  { "distributed", "gp.pipeline spreads a model over the devices of one machine" },
  -- features that do not exist here
  { "complex complex64 complex128 cfloat cdouble chalf real imag angle conj conj_physical "
    .. "view_as_real view_as_complex polar isreal resolve_conj resolve_neg H mH",
    "there are no complex numbers: keep two tensors" },
  { "fft rfft irfft ifft stft istft",
    "there are no Fourier transforms: multiply by matrices of sines and cosines, x:matmul(c)" },
  { "sparse sparse_coo_tensor sparse_csr_tensor to_sparse to_dense coalesce",
    "there are no sparse tensors: keep positions and values, t:scatter_add(d, positions, values) "
    .. "and t:index_add(d, positions, values) sum them" },
  { "vmap func", "ops take a batch in their first dimensions; t:unsqueeze(d) makes room for one" },
  { "distributions", "gp.randn, gp.rand, gp.bernoulli, t:multinomial and their logarithms" },
  { "quantize_per_tensor qint8", "bf16 and f16 are the narrowest numbers" },
  { "digamma polygamma mvlgamma igamma igammac i0 zeta", "t:lgamma() is there, others are not" },
  { "eig eigvals", "gp.linalg.eigh is for symmetric matrices; others have complex eigenvalues" },
  { "nextafter frexp", "t:bytes() has the bits, gp.frombytes makes a tensor of them" },
  -- names with several counterparts
  { "stride as_strided data_ptr storage set_ storage_offset",
    "how a tensor lies is its own affair: t:is_contiguous(), t:contiguous(), t[{{1, -1, 2}}]" },
  { "is_cuda is_sparse is_leaf retain_grad grad_fn",
    "t.device, t.requires_grad and t.grad are there" },
  { "register_hook", "t * 1 gives a tensor of its own; gp.grad(fn) the gradient of any" },
  { "resize_ resize_as_ resizeAs", "tensors keep their size: t:reshape, t:expand, t:pad" },
  { "repeat repeatTensor", "t:tile {2, 3}" },
  { "new_empty empty_strided empty_permuted", "t:new_zeros(shape)" },
  { "split_with_sizes", "t:split({2, 3}, d)" },
  { "gradient", "t:diff(1, d)" },
  { "gcd lcm", "a loop over t:remainder(other)" },
  { "logdet", "select(2, gp.linalg.slogdet(t))" },
  { "matrix_exp", "gp.linalg.eigh, then v:matmul(w:exp():diag_embed()):matmul(v:t())" },
  { "triangular_solve cholesky_solve lu_solve", "gp.linalg.solve(A, B)" },
  { "cholesky_inverse", "gp.linalg.inv(A)" },
  { "geqrf ormqr", "gp.linalg.qr(A)" },
  { "svd_lowrank pca_lowrank", "gp.linalg.svd(A)" },
  { "log_normal_ lognormal_", "t:normal_(mean, std):exp_(), or gp.randn" },
  { "geometric_ cauchy_", "t:uniform_(), then their formulas" },
  { "broadcast_shapes", "gp.broadcast_tensors(a, b) gives both in one shape" },
  { "unravel_index", "t:nonzero() gives rows of positions" },
  { "grid_sampler grid_sample affine_grid", "t:gather and t:index_select choose positions" },
  { "rsub", "b - a" },
  { "index_reduce", "t:scatter_reduce(d, positions, source, reduce)" },
  { "put put_", "t:index_put(positions, values)" },
  { "sum_to_size", "t:sum(d, true)" },
  { "map_ apply_ apply map", "t:totable(), a Lua loop, gp.tensor(list)" },
  -- Torch7
  { "cmul", "a * b" }, { "cdiv", "a / b" }, { "csub", "a - b" }, { "cadd", "a + b" },
  { "nElement", "t:numel()" }, { "nDimension", "t:dim()" }, { "cinv", "t:reciprocal()" },
  { "typeAs", "t:to(other.dtype)" }, { "setNumThreads", "the option threads of gp.pipeline" },
  { "isSameSizeAs isSize", "gp.equal(a, b), or compare a.shape" },
  { "maskedFill maskedSelect maskedCopy indexCopy indexAdd indexFill indexSelect",
    "masked_fill, masked_select, masked_scatter, index_copy, index_add, index_fill, index_select" },
  { "expandAs viewAs", "t:expand(other.shape), t:view_as(other)" },
  { "isTensor is_tensor", 'getmetatable(t) == "gpipe.Tensor"' },
  { "manualSeed", "gp.seed(n)" },
}

for _, way in ipairs(WAYS) do
  for word in way[1]:gmatch "%S+" do ways[word] = way[2] end
end

return ways
