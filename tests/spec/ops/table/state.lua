-- tests/spec/ops/table/state.lua - ops that write to existing memory: they return no new tensor, so
-- they are tested by what they leave there.

local assert = require "luassert"
local gp = require "gpipe"
local array = require "tests.support.array"
local expect = require "tests.support.expect"

local nn = gp.nn

-- ---- accumulate ------------------------------------------------------------------------------

-- One layer reads w `readers` times, in different ways.
local Reader = nn.class("Reader")
function Reader:init(shape, dtype, readers)
  self.w, self.readers = nn.Parameter(shape, 0.5, { dtype = dtype }), readers
end
function Reader:forward(input)
  local y = input * self.w
  for _ = 2, self.readers do y = y + input * self.w end
  return y
end

local function gradient_of(readers, shape, dtype, rows, opts)
  opts.loss = function(y) return y:sum(), #y end
  local pipe <close> = gp.pipeline(nn.Sequential { Reader(shape, dtype, readers) }, opts)
  local batch = gp.ones({ rows, table.unpack(shape) }, { dtype = dtype })
  pipe:step(batch, gp.zeros { rows })
  local grad = array.of(pipe:parameters()[1].grad)
  pipe:step(batch, gp.zeros { rows }, { accumulate = true })
  return grad, array.of(pipe:parameters()[1].grad)
end

local function check_accumulated(readers, shape, dtype, rows, chunks)
  local once, twice = gradient_of(readers, shape, dtype, rows, { chunks = chunks })
  for i = 1, array.count(shape) do
    assert.near(readers, once[i], 1e-5)
    assert.near(2 * readers, twice[i], 1e-5)
  end
end

local accumulate = {
  op = "accumulate", tolerance = "exact", gradient = false, cases = {},
  also = {
    { "adds what readers, micro-batches and steps contribute", function()
      for _, dtype in ipairs { "f32", "f64" } do
        for _, shape in ipairs { { 1 }, { 3 }, { 70, 2 }, { 300 } } do
          check_accumulated(1, shape, dtype, 3, 1)
          check_accumulated(3, shape, dtype, 5, 2)
        end
      end
    end },
    { "keeps parameters of every shape, also a scalar", function()
      check_accumulated(2, {}, "f64", 4, 4)
    end },
  },
}

-- ---- assign ----------------------------------------------------------------------------------

-- A layer that writes f(buffer, input) into a buffer and returns input plus the buffer's new value.
local Writer = nn.class("Writer")
function Writer:init(shape, f, dtype)
  self.state, self.f = nn.Buffer(shape, 1, { dtype = dtype }), f
  self.scale = nn.Parameter({ 1 }, 1, { dtype = dtype })
end
function Writer:forward(input)
  self.state:copy_(self.f(self.state, input))
  return input * self.scale + self.state:sum()
end

local function run(shape, f, opts)
  opts.loss = function(y) return y:sum(), 1 end
  local model = nn.Sequential { Writer(shape, f, opts.dtype) }
  opts.dtype = nil
  local pipe <close> = gp.pipeline(model, opts)
  local dtype = model[1].state.dtype
  local batch = gp.arange(1, 4, 1, { dtype = dtype }):reshape { 4, 1 }
  local loss = pipe:step(batch, gp.zeros { 4 })
  local state = array.of(model[1].state:value())
  return state, loss, pipe:step(batch, gp.zeros { 4 }), array.of(model[1].state:value())
end

local assign = {
  op = "assign", tolerance = "exact", gradient = false, cases = {},
  also = {
    { "writes a buffer that later reads see, in f32 and f64", function()
      for _, dtype in ipairs { "f32", "f64" } do
        local state, loss, again,
          after = run({ 2 }, function(s, input) return s * 2 + input:sum() end,
          { dtype = dtype })
        assert.are.same({ shape = { 2 }, 12, 12 }, state)
        assert.are.equal(10 + 4 * 24, loss)
        assert.are.same({ shape = { 2 }, 34, 34 }, after)
        assert.are.equal(10 + 4 * 68, again)
      end
    end },
    { "broadcasts what is written", function()
      local state = run({ 2, 3 }, function(_, input) return input:sum(1) end, {})
      assert.are.same({ shape = { 2, 3 }, 10, 10, 10, 10, 10, 10 }, state)
      state = run({ 2 }, function() return 7 end, {})
      assert.are.same({ shape = { 2 }, 7, 7 }, state)
    end },
    { "writes strided values in order", function()
      local state = run({ 2, 2 }, function(_, input) return input:reshape(2, 2):transpose() end, {})
      assert.are.same({ shape = { 2, 2 }, 1, 3, 2, 4 }, state)
    end },
    { "runs in the order of micro-batches, recomputed or not", function()
      for _, checkpoint in ipairs { "never", "always", "except_last" } do
        local state, loss = run({ 1 }, function(s, input) return s * 2 + input:sum() end,
          { chunks = 2, checkpoint = checkpoint })
        -- 1 -> 2 + 3 = 5 -> 10 + 7 = 17
        assert.are.same({ shape = { 1 }, 17 }, state)
        assert.are.equal((10 + 2 * 5 + 2 * 17) / 2, loss) -- each micro-batch counts as one
      end
    end },
    { "refuses shapes that do not fit", function()
      expect.fails_with("does not broadcast to 2", run, { 2 },
        function(_, input) return input:reshape(4) end, {})
    end },
    { "refuses to write anything but a buffer", function()
      expect.fails_with("only an nn.Buffer can be written", run, { 1 }, function(_, input)
        return input:copy_(1)
      end, {})
    end },
    { "writes a tensor eagerly outside of a pipeline", function()
      local t = gp.zeros { 2, 2 }
      t:transpose():copy_ { { 1, 2 }, { 3, 4 } }
      assert.are.same({ { 1, 3 }, { 2, 4 } }, t:totable())
    end },
  },
}

return { accumulate, assign }
