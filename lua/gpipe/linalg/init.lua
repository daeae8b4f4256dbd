-- lua/gpipe/linalg/init.lua - gp.linalg: linear algebra by the names of torch.linalg.
--
-- The functions take tensors of f32 and f64 that have values. The last two dimensions are matrices,
-- those before are a batch of them. LAPACK computes on the host, wherever the tensors lie.

local factor = require "gpipe.linalg.factor"
local namespace = require "gpipe.namespace"
local norm = require "gpipe.linalg.norm"
local solve = require "gpipe.linalg.solve"
local spectrum = require "gpipe.linalg.spectrum"

return namespace("gp.linalg", {
  det = solve.det, slogdet = solve.slogdet, inv = solve.inv, solve = solve.solve,
  matrix_power = solve.matrix_power, lstsq = solve.lstsq,
  cholesky = factor.cholesky, qr = factor.qr,
  svd = spectrum.svd, eigh = spectrum.eigh, pinv = spectrum.pinv,
  matrix_rank = spectrum.matrix_rank, norm = norm,
})
