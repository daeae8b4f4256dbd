-- tests/spec/tensor/finalizer_spec.lua - a finalizer may free tensors that a call is working on.
--
-- Any allocation of a binding in Lua may run the collector, and with it finalizers of the script.
-- Each case runs in a process of its own, where every allocation is a whole collection, and the
-- finalizer puts other tensors where the freed ones were. The call may use the tensors or find them
-- freed; it must not read memory that no longer belongs to them.

local child = dofile "tests/child.lua"

local PROLOGUE = [[
local gp, core = require "gpipe", require "gpipe.core"
local nn, optim = gp.nn, gp.optim
collectgarbage("incremental", 0, 1000, 40) -- every step is a whole collection
local others = {}
-- Calls f(...), with a finalizer waiting for the next allocation. It runs afterwards if f allocates
-- nothing, but not when the program ends: objects made then are not finalized (Lua's rule).
local function interfered(finalizer, f, ...)
  collectgarbage("stop")
  setmetatable({}, { __gc = finalizer })
  collectgarbage("restart")
  local good, result = pcall(f, ...)
  collectgarbage("stop")
  collectgarbage()
  return { good = good, result = result }
end
-- Does the same with a finalizer that frees the tensors and reuses their memory.
local function doomed(tensors, f, ...)
  local shapes = {}
  for i, t in ipairs(tensors) do shapes[i] = t.shape end
  return interfered(function()
    for _, t in ipairs(tensors) do t:free() end
    for _, shape in ipairs(shapes) do
      for _ = 1, 4 do others[#others + 1] = gp.full(shape, 7) end
    end
  end, f, ...)
end
local function check(outcome, expected)
  local result = outcome.result
  if not outcome.good then
    assert(tostring(result):find "freed" or tostring(result):find "closed", result)
    return
  end
  if tostring(result) == "[freed tensor]" then return end -- in place: the argument
  if type(result) == "userdata" then result = result:totable() end
  if type(expected) == "userdata" then expected = expected:totable() end
  local function same(a, b)
    if type(a) ~= "table" or type(b) ~= "table" then return a == b end
    for k, v in pairs(b) do if not same(a[k], v) then return false end end
    return #a == #b
  end
  assert(same(result, expected), "the wrong values")
end
local t, u = gp.ones { 8, 8 }, gp.ones { 8, 8 }
local v, w = gp.ones { 8 }, gp.ones { 8 }
]]

-- Each case: a sentence, and what runs after the prologue.
local cases = {
  { "an operator of two tensors", "check(doomed({t, u}, t.add, t, u), gp.full({8, 8}, 2))" },
  { "an operator of a tensor with itself", "check(doomed({t}, t.add, t, t), gp.full({8, 8}, 2))" },
  { "an operator with a number", "check(doomed({t}, t.add, t, 1), gp.full({8, 8}, 2))" },
  { "a sum of booleans", "t = t:gt(0) check(doomed({t}, t.sum, t), 64)" },
  { "a mean over a dimension", "check(doomed({t}, t.mean, t, 1), gp.ones {8})" },
  { "a maximum", "check(doomed({t}, t.max, t), 1)" },
  { "an argmax", "check(doomed({t}, t.argmax, t), 1)" },
  { "a softmax over the first dimension",
    "check(doomed({t}, t.softmax, t, 1), gp.full({8, 8}, 1 / 8))" },
  { "a product of vectors", "check(doomed({v, w}, v.matmul, v, w), 8)" },
  { "a product of a vector and a transposed matrix",
    "local m = u:transpose() check(doomed({v, m}, v.matmul, v, m), gp.full({8}, 8))" },
  { "a reshape", "check(doomed({t}, t.reshape, t, {64}), gp.ones {64})" },
  { "a reshape of a tensor with gaps",
    "t = t:transpose() check(doomed({t}, t.reshape, t, {64}), gp.ones {64})" },
  { "a view", "check(doomed({t}, t.view, t, {64}), gp.ones {64})" },
  { "a permutation", "check(doomed({t}, t.permute, t, {2, 1}), gp.ones {8, 8})" },
  { "a permutation given as numbers", "check(doomed({t}, t.permute, t, 2, 1), gp.ones {8, 8})" },
  { "a part", "check(doomed({t}, t.narrow, t, 1, 2, 3), gp.ones {3, 8})" },
  { "a slice", "check(doomed({t}, t.select, t, 1, 2), gp.ones {8})" },
  { "a slice by index",
    "local i = function(a, n) return a[n] end check(doomed({t}, i, t, 2), gp.ones {8})" },
  { "an assignment to a slice", [[
    local set = function(a, n, b) a[n] = b return a end
    check(doomed({t, v}, set, t, 2, v), gp.ones {8, 8})]] },
  { "an assignment of a table", [[
    local set = function(a, n, b) a[n] = b return a end
    check(doomed({t}, set, t, 2, {1, 1, 1, 1, 1, 1, 1, 1}), gp.ones {8, 8})]] },
  { "copy_", "check(doomed({t, u}, t.copy_, t, u), gp.ones {8, 8})" },
  { "copy_ of a number", "check(doomed({t}, t.copy_, t, 1), gp.ones {8, 8})" },
  { "equal", "check(doomed({t, u}, gp.equal, t, u), true)" },
  { "equal of parameters", [[
    local p, q = nn.Parameter({8}, nn.init.ones()), nn.Parameter({8}, nn.init.ones())
    check(doomed({p, q}, gp.equal, p, q), true)]] },
  { "totable", "check(doomed({t}, t.totable, t), gp.ones {8, 8})" },
  { "item", "local s = gp.ones {} check(doomed({s}, s.item, s), 1)" },
  { "the shape", "check(doomed({t}, function(a) return a.shape end, t), {8, 8})" },
  { "the device of a parameter", [[
    local p = nn.Parameter({8}, nn.init.ones())
    check(doomed({p}, function(a) return a.device end, p), "cpu")]] },
  { "a clone", "check(doomed({t}, t.clone, t), gp.ones {8, 8})" },
  { "a conversion", "check(doomed({t}, t.to, t, 'f64'), gp.ones {8, 8})" },
  { "a move", "check(doomed({t}, t.to, t, 'cpu'), gp.ones {8, 8})" },
  { "an expansion", "check(doomed({v}, v.expand, v, {8, 8}), gp.ones {8, 8})" },
  { "a concatenation", "check(doomed({t, u}, core.concat, {t, u}, 1), gp.ones {16, 8})" },
  { "where", "local c = t:gt(0) check(doomed({c, t, u}, core.where, c, t, u), gp.ones {8, 8})" },
  { "linear", "check(doomed({t, u, v}, core.linear, t, u, v), gp.full({8, 8}, 9))" },
  { "the text of a tensor", "doomed({t}, tostring, t)" },
  { "a parameter's value", [[
    local p = nn.Parameter({8}, nn.init.ones())
    check(doomed({p}, p.value, p), gp.ones {8})]] },
  { "a parameter's gradient", [[
    local p = nn.Parameter({8}, nn.init.ones())
    local got = doomed({p}, core.methods.grad, p) assert(not got.good or got.result == nil)]] },
  { "rows gathered by a list", "check(doomed({t}, core.gather_rows, t, {1, 2}), gp.ones {2, 8})" },
  { "rows gathered by a tensor", [[
    local p = gp.tensor({1, 2}, {dtype = "i64"})
    check(doomed({t, p}, core.gather_rows, t, p), gp.ones {2, 8})]] },
  { "windows of bytes", [[
    local b, p = gp.ones({16}, {dtype = "u8"}), gp.tensor({1, 2}, {dtype = "i64"})
    check(doomed({b, p}, core.gather_windows, b, p, 4), gp.ones {2, 4})]] },
  { "bytes joined", [[
    local a, b = gp.ones({8}, {dtype = "u8"}), gp.ones({8}, {dtype = "u8"})
    check(doomed({a, b}, core.join_bytes, {a, b}), gp.ones {16})]] },
  { "a save", [[
    local path = os.tmpname()
    local got = doomed({t, u}, core.archive_save, path, {"t", "u"}, {t, u}, {})
    if got.good then assert(gp.equal(gp.load(path).u, gp.ones {8, 8})) end
    os.remove(path)]] },
  { "an optimizer", [[
    local p, q = nn.Parameter({8}, nn.init.ones()), nn.Parameter({8}, nn.init.ones())
    local got = interfered(function() p:free() q:free() end, core.optimizer_new, "sgd", {{p}, {q}})
    assert(not got.good or type(got.result) == "userdata")]] },
  { "clipping", [[
    local p, q = nn.Parameter({8}, nn.init.ones()), nn.Parameter({8}, nn.init.ones())
    check(doomed({p, q}, core.clip_grad_norm, {p, q}, 1), 0)]] },
}

local TRAINED = [[
local model = nn.Sequential { nn.Linear(8, 8), nn.Linear(8, 8) }
local pipe = gp.pipeline(model, { balance = { 1, 1 }, chunks = 2, loss = nn.MSELoss() })
local loss = pipe:step(t, u)
local function closed(f, ...) return interfered(function() pipe:close() end, f, ...) end
]]

local pipelines = {
  { "the inputs of a step", "check(doomed({t, u}, pipe.step, pipe, t, u), loss)" },
  { "a step while the pipeline is closed", "check(closed(pipe.step, pipe, t, u), loss)" },
  { "an evaluation while the pipeline is closed", "closed(pipe.evaluate, pipe, t, u)" },
  { "stats while the pipeline is closed", "closed(function() return pipe.stats end)" },
  { "a trace while the pipeline is closed", [[
    local path = os.tmpname()
    closed(pipe.trace, pipe, path)
    os.remove(path)]] },
  { "the lowered schedule while the pipeline is closed", "closed(pipe.lowered, pipe)" },
  { "a new batch shape while the pipeline is closed", [[
    local x, y = gp.ones {6, 8}, gp.ones {6, 8}
    closed(pipe.step, pipe, x, y)]] },
}

local function run(text)
  local script = child.file(text)
  local _, err, code = child.run { script }
  os.remove(script)
  assert.equal("", err)
  assert.equal(0, code)
end

describe("a finalizer that frees tensors in use is survived by", function()
  for _, case in ipairs(cases) do
    it(case[1], function() run(PROLOGUE .. case[2]) end)
  end
end)

describe("a finalizer during a call of a pipeline is survived by", function()
  for _, case in ipairs(pipelines) do
    it(case[1], function() run(PROLOGUE .. TRAINED .. case[2]) end)
  end
end)
