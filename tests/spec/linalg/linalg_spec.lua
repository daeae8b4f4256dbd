-- tests/spec/linalg/linalg_spec.lua - gp.linalg: results are checked by what defines them,
-- gradients by differences.

local assert = require "luassert"
local gp = require "gpipe"
local core = require "gpipe.core"
local errors = require "gpipe.errors"

local linalg = gp.linalg
local NEAR = { f32 = 2e-4, f64 = 1e-11 } -- products of up to 33 terms of size 3, back and forth

local function draw(shape, dtype, seed)
  return gp.randn(shape, { dtype = dtype or "f64", seed = seed or 7 })
end

local function near(want, have, note)
  assert.same(want.shape, have.shape, note)
  if want:numel() == 0 then return end
  local off = (want - have):abs():max():item()
  assert(off < NEAR[want.dtype] * (1 + want:abs():max():item()), ("%s: %g off"):format(note, off))
end

local function eye(n, dtype)
  return n == 0 and gp.zeros({ 0, 0 }, { dtype = dtype }) or gp.eye(n, { dtype = dtype })
end
local function t(x) return x:transpose(-2, -1) end

-- Draws symmetric matrices with eigenvalues of at least 1.
local function positive(shape, dtype)
  local x = draw(shape, dtype)
  return x:matmul(t(x)) + eye(shape[#shape], dtype)
end

-- Calls f with each of a few shapes in both dtypes, also with strides.
local function each(shapes, f)
  for _, dtype in ipairs { "f32", "f64" } do
    for _, shape in ipairs(shapes) do
      local note = dtype .. " " .. table.concat(shape, "x")
      f(draw(shape, dtype), note, dtype)
      local turned = table.move(shape, 1, #shape, 1, {})
      turned[#turned], turned[#turned - 1] = turned[#turned - 1], turned[#turned]
      f(t(draw(turned, dtype)), note .. " transposed", dtype)
    end
  end
end

local SQUARE = { { 1, 1 }, { 3, 3 }, { 7, 7 }, { 33, 33 }, { 2, 4, 4 }, { 2, 1, 3, 3 },
  { 0, 3, 3 } }
local ANY = { { 1, 1 }, { 5, 3 }, { 3, 5 }, { 33, 7 }, { 2, 4, 6 }, { 3, 2, 6, 4 }, { 0, 2, 3 } }

-- Computes the determinant of a 3 x 3 matrix as the sum over permutations.
local function det3(m)
  return m[1][1] * (m[2][2] * m[3][3] - m[2][3] * m[3][2])
    - m[1][2] * (m[2][1] * m[3][3] - m[2][3] * m[3][1])
    + m[1][3] * (m[2][1] * m[3][2] - m[2][2] * m[3][1])
end

describe("linear algebra", function()
  it("inverts: a matrix times its inverse is the identity", function()
    each(SQUARE, function(a, note, dtype)
      near(eye(a:size(-1), dtype):expand(a.shape):clone(), a:matmul(linalg.inv(a)), note)
    end)
    assert.same({ 0, 0 }, linalg.inv(gp.zeros { 0, 0 }).shape)
  end)

  it("solves equations for matrices, vectors, batches, from the left and the right", function()
    local a, b, v = draw { 2, 3, 3 }, draw { 3, 5 }, draw { 2, 3 }
    near(b:expand { 2, 3, 5 }, a:matmul(linalg.solve(a, b)), "B broadcasts")
    near(v:unsqueeze(-1), a:matmul(linalg.solve(a, v):unsqueeze(-1)), "vectors")
    near(draw { 3 }, draw({ 3, 3 }, "f64",
      9):mv(linalg.solve(draw({ 3, 3 }, "f64", 9), draw { 3 })),
      "a vector")
    local x = linalg.solve(draw { 3, 3 }, draw { 4, 2, 3 }, { left = false })
    near(draw { 4, 2, 3 }, x:matmul(draw { 3, 3 }), "from the right")
  end)

  it("has determinants and their logarithms", function()
    local a = draw { 4, 3, 3 }
    local det, sign, size = linalg.det(a), linalg.slogdet(a)
    for i = 1, 4 do
      local want = det3(a[i]:totable())
      assert.near(want, det[i], 1e-12)
      assert.are.equal(want < 0 and -1 or 1, sign[i])
      assert.near(math.log(math.abs(want)), size[i], 1e-12)
    end
    local s, l = linalg.slogdet(gp.zeros { 2, 2 })
    assert.same({ 0, -math.huge }, { s:item(), l:item() })
    assert.are.equal(1, linalg.det(gp.zeros { 0, 0 }):item())
  end)

  it("raises matrices to powers", function()
    local a = draw { 2, 3, 3 }
    near(a:matmul(a):matmul(a):matmul(a):matmul(a), linalg.matrix_power(a, 5), "5")
    near(linalg.inv(a):matmul(linalg.inv(a)), linalg.matrix_power(a, -2), "-2")
    near(eye(3, "f64"):expand { 2, 3, 3 }, linalg.matrix_power(a, 0), "0")
  end)

  it("factors positive definite matrices into L L^T and R^T R", function()
    for _, dtype in ipairs { "f32", "f64" } do
      for _, shape in ipairs { { 1, 1 }, { 7, 7 }, { 2, 3, 4, 4 }, { 0, 0 } } do
        local a = positive(shape, dtype)
        local l, u = linalg.cholesky(a), linalg.cholesky(a, { upper = true })
        near(a, l:matmul(t(l)), "lower")
        near(a, t(u):matmul(u), "upper")
        assert(gp.equal(l:tril(), l) and gp.equal(u:triu(), u))
      end
    end
  end)

  it("factors into Q R, with orthogonal Q and triangular R, reduced and complete", function()
    each(ANY, function(a, note, dtype)
      for _, mode in ipairs { "reduced", "complete" } do
        local q, r = linalg.qr(a, mode)
        local k = mode == "complete" and a:size(-2) or math.min(a:size(-2), a:size(-1))
        assert.are.equal(k, q:size(-1))
        near(a:contiguous(), q:matmul(r), note)
        near(eye(k, dtype):expand(t(q):matmul(q).shape), t(q):matmul(q), note)
        assert(gp.equal(r:triu(), r))
        if mode == "reduced" then assert(gp.equal(r, (linalg.qr(a, "r")))) end
      end
    end)
  end)

  it("factors into U S V^T, with orthogonal U and V and descending singular values", function()
    each(ANY, function(a, note, dtype)
      local k = math.min(a:size(-2), a:size(-1))
      for _, full in ipairs { true, false } do
        local u, s, vh = linalg.svd(a, { full_matrices = full })
        assert.same({ full and a:size(-2) or k, k, full and a:size(-1) or k },
          { u:size(-1), s:size(-1), vh:size(-2) })
        near(eye(u:size(-1), dtype):expand(t(u):matmul(u).shape), t(u):matmul(u), note)
        near(eye(vh:size(-2), dtype):expand(vh:matmul(t(vh)).shape), vh:matmul(t(vh)), note)
        near(a:contiguous(), (u:narrow(-1, 1, k) * s:unsqueeze(-2)):matmul(vh:narrow(-2, 1, k)),
          note)
        if k > 1 then assert(s:narrow(-1, 1, k - 1):ge(s:narrow(-1, 2, k - 1)):all():item()) end
      end
    end)
  end)

  it("has ascending eigenvalues, and eigenvectors, of symmetric matrices", function()
    each(SQUARE, function(a, note)
      local symmetric = a + t(a)
      for _, half in ipairs { "L", "U" } do
        local n = a:size(-1)
        local mask = half == "L" and symmetric:tril() or symmetric:triu()
        local w, v = linalg.eigh(mask, half)
        near(symmetric:matmul(v), v * w:unsqueeze(-2), note)
        if n > 1 then assert(w:narrow(-1, 1, n - 1):le(w:narrow(-1, 2, n - 1)):all():item()) end
      end
    end)
  end)

  it("has pseudo-inverses and ranks, with bounds on small singular values", function()
    each(ANY, function(a, note)
      local p = linalg.pinv(a)
      near(a:contiguous(), a:matmul(p):matmul(a), note)
      near(p, p:matmul(a):matmul(p), note)
      near(t(a:matmul(p)), a:matmul(p), note)
    end)
    local a = draw({ 2, 5, 2 }):matmul(draw({ 2, 2, 4 }, "f64", 3))
    assert.same({ 2, 2 }, linalg.matrix_rank(a):totable())
    assert.same({ 0, 0 }, linalg.matrix_rank(a, { atol = 1e3 }):totable())
    near(a, a:matmul(linalg.pinv(a)):matmul(a), "of rank 2")
  end)

  it("has least squares, whose residual is orthogonal to the columns", function()
    local a, b = draw { 2, 6, 3 }, draw({ 2, 6, 2 }, "f64", 3)
    local x, rest, rank, s = linalg.lstsq(a, b)
    near(gp.zeros({ 2, 3, 2 }, { dtype = "f64" }), t(a):matmul(a:matmul(x) - b), "orthogonal")
    near((a:matmul(x) - b):square():sum(-2), rest, "residuals")
    assert.same({ 3, 3 }, rank:totable())
    assert.same({ 2, 3 }, s.shape)
    local wide = draw { 2, 4 }
    local y, none = linalg.lstsq(wide, draw { 2 })
    near(draw { 2 }, wide:mv(y), "a vector")
    assert.same({ 0 }, none.shape)
  end)

  it("has the norms of vectors and matrices", function()
    local m = gp.tensor({ { 1, -2, 0 }, { 3, 4, -5 } }, { dtype = "f64" })
    local s = select(2, linalg.svd(m)):totable()
    for _, case in ipairs {
      { math.sqrt(55) }, { math.sqrt(55), "fro" }, { s[1] + s[2], "nuc" }, { 6, 1 }, { 4, -1 },
      { s[1], 2 }, { s[2], -2 }, { 12, math.huge }, { 3, -math.huge },
    } do
      assert.near(case[1], linalg.norm(m, case[2]):item(), 1e-12)
    end
    for _, case in ipairs {
      { 7, 1 }, { 3, 0 }, { 4, math.huge }, { 0, -math.huge }, { 273 ^ 0.25, 4 }, { 0, -1 },
    } do
      local v = gp.tensor({ 1, -2, 0, 4 }, { dtype = "f64" })
      assert.near(case[1], linalg.norm(v, case[2]):item(), 1e-12)
    end
    assert.same({ 3, 12 }, linalg.norm(m, 1, 2):totable())
    assert.same({ 2, 1 }, linalg.norm(m, 1, 2, true).shape)
    local batch = draw { 4, 2, 3 }
    near(linalg.norm(batch[2], 2):reshape { 1 }, linalg.norm(batch, 2, { 2, 3 }):narrow(1, 2, 1),
      "batch")
    assert.same({ 1, 2, 1 }, linalg.norm(batch, "nuc", { -1, 1 }, true).shape)
  end)
end)

-- Functions whose values do not depend on LAPACK's choices (signs of vectors).
local SMOOTH = {
  { "det", linalg.det, { 2, 3, 3 } }, { "det of a singular matrix", linalg.det,
    from = gp.tensor({ { 1, 2, 3 }, { 2, 4, 6 }, { 1, 0, 1 } }, { dtype = "f64" }) },
  { "slogdet", function(a) return (select(2, linalg.slogdet(a))) end, { 2, 3, 3 } },
  { "inv", linalg.inv, { 2, 3, 3 } }, { "matrix_power", function(a)
    return linalg.matrix_power(a, -3)
  end, { 3, 3 } },
  { "solve", linalg.solve, { 2, 3, 3 }, { 3, 2 } },
  { "solve of a vector", linalg.solve, { 3, 3 }, { 3 } },
  { "solve from the right", function(a, b) return linalg.solve(a, b, { left = false }) end,
    { 3, 3 }, { 2, 3 } },
  { "cholesky", function(a) return linalg.cholesky(a:matmul(t(a)) + eye(3, "f64")) end,
    { 2, 3, 3 } },
  { "cholesky, upper", function(a)
    return linalg.cholesky(a:matmul(t(a)) + eye(3, "f64"), { upper = true })
  end, { 3, 3 } },
  { "qr", linalg.qr, { 2, 5, 3 } }, { "qr of a square matrix", linalg.qr, { 3, 3 } },
  { "svd, U and V", function(a)
    local u, s, vh = linalg.svd(a, { full_matrices = false })
    return u:matmul(vh), s, (u * s:square():unsqueeze(-2)):matmul(vh), u:square(), vh:square()
  end, { 2, 4, 3 } },
  { "svd, wide", function(a)
    local u, s, vh = linalg.svd(a, { full_matrices = false })
    return u:matmul(vh), s, u:square(), vh:square()
  end, { 3, 5 } },
  { "eigh", function(a)
    local w, v = linalg.eigh(a + t(a))
    return w, v:square(), (v * w:exp():unsqueeze(-2)):matmul(t(v))
  end, { 2, 3, 3 } },
  { "pinv", linalg.pinv, { 2, 4, 3 } }, { "pinv, wide", linalg.pinv, { 3, 4 } },
  { "lstsq", function(a, b) return (linalg.lstsq(a, b)) end, { 5, 3 }, { 5, 2 } },
  { "norm nuc", function(a) return linalg.norm(a, "nuc") end, { 4, 3 } },
  { "norm 2", function(a) return linalg.norm(a, 2) end, { 4, 3 } },
  { "norm inf", function(a) return linalg.norm(a, math.huge, { 1, 2 }) end, { 4, 3 } },
  { "norm 3", function(a) return linalg.norm(a, 3, 2) end, { 4, 3 } },
}

describe("gradients of linear algebra", function()
  for _, case in ipairs(SMOOTH) do
    it("are right: " .. case[1], function()
      local inputs = { case.from or draw(case[3]), case[4] and draw(case[4], "f64", 5) }
      assert(gp.gradcheck(case[2], inputs))
    end)
  end

  it("leave the bits of the values unchanged", function()
    local a = draw({ 3, 3 }, "f32")
    local leaf = a:clone()
    leaf.requires_grad = true
    assert(gp.equal(linalg.inv(a), linalg.inv(leaf):detach()))
    assert(gp.equal(linalg.det(a), linalg.det(leaf):detach()))
  end)

  it("are finite where singular values or eigenvalues are equal", function()
    local a = eye(3, "f64") * 2
    a.requires_grad = true
    local u, s, vh = linalg.svd(a)
    local w, v = linalg.eigh(a)
    local loss = s:sum() + w:sum() + (u:matmul(vh) + v):sum()
    loss:backward()
    assert(a.grad:isfinite():all():item())
  end)
end)

describe("a wrong call of linear algebra", function()
  local nan = gp.full({ 2, 2 }, 0 / 0)
  local leaf = draw { 2, 3 }
  leaf.requires_grad = true
  local singular = gp.concat({ eye(3, "f32"):unsqueeze(1), gp.ones { 1, 3, 3 } }, 1)
  for _, case in ipairs {
    { "shape", { "2x3", "square" }, linalg.inv, gp.ones { 2, 3 } },
    { "shape", { "2x3", "square" }, linalg.det, gp.ones { 2, 3 } },
    { "shape", { "1 dim" }, linalg.cholesky, gp.ones { 2 } },
    { "dtype", { "i64" }, linalg.inv, gp.ones({ 2, 2 }, { dtype = "i64" }) },
    { "range", { "matrix 2", "2x3x3", "pivot 2" }, linalg.inv, singular },
    { "range", { "pivot 2" }, linalg.solve, gp.ones { 2, 2 }, gp.ones { 2 } },
    { "range", { "order 1" }, linalg.cholesky, -eye(2, "f32") },
    { "shape", { "2x2", "3x1" }, linalg.solve, eye(2, "f32"), gp.ones { 3, 1 } },
    { "dtype", { "f32", "f64" }, linalg.solve, eye(2, "f32"), draw { 2, 2 } },
    { "finite", { "2x2" }, linalg.svd, nan }, { "finite", { "2x2" }, linalg.eigh, nan },
    { "unsupported", { "2x3" }, linalg.svd, leaf }, { "unsupported", { "2x3" }, linalg.qr, leaf },
    { "shape", { "3 dim" }, linalg.norm, gp.ones { 2, 2, 2 }, 2 },
    { "shape", { "2x3", "3x1" }, linalg.lstsq, gp.ones { 2, 3 }, gp.ones { 3, 1 } },
  } do
    it(("is refused with its facts: %s"):format(table.concat(case[2], ", ")), function()
      local good, message = pcall(table.unpack(case, 3))
      assert.is_false(good)
      assert.are.equal(case[1], errors.code_of(message))
      for _, fact in ipairs(case[2]) do assert(tostring(message):find(fact, 1, true), message) end
    end)
  end

  it("is refused in a pipeline", function()
    local good, message = pcall(gp.compile, linalg.inv, { eye(2, "f32") })
    assert.is_false(good)
    assert(tostring(message):find("gp.linalg.inv", 1, true), message)
  end)

  it("is checked again in the core where tensors do not fit together", function()
    assert.has_error(function() core.linalg("solve", eye(2, "f32"), eye(3, "f32"),
      eye(2, "f32")) end)
    assert.has_error(function() core.linalg("svd", eye(2, "f32"), eye(2, "f32"), gp.ones { 1 },
      eye(2, "f32")) end)
    assert.has_error(function() core.linalg("qr", gp.ones { 2, 3 }, eye(2, "f32"),
      gp.ones { 3, 2 }) end)
    assert.has_error(function() core.linalg("nothing", eye(2, "f32")) end)
  end)
end)
