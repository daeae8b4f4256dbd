-- scripts/bench/gpu_ceilings.lua - what the GPU at hand can do at most: bytes copied and matrices
-- multiplied in a second, which other figures are shares of.
--
-- The products are those of a layer in a pipeline, forward and backward: two models that differ
-- only in the number of layers differ by the time of those layers. The numbers are random, because
-- the units run faster on zeros and ones.
local gp = require "gpipe"
local figure = require "figure"
local nn = gp.nn

local ceilings = {}

--- Return the bytes a second that a copy within GPU memory moves, read and written.
---@param rows integer
---@param width integer
---@param rounds integer
---@return number
function ceilings.copy_rate(rows, width, rounds)
  local from, to = gp.ones({ rows, width }, { device = "cuda:0" }),
    gp.ones({ rows, width }, { device = "cuda:0" })
  local times = {}
  for i = -1, rounds do
    local seconds = figure.seconds(function()
      for _ = 1, 10 do to:copy_(from) end
      to[1][1] = to[1][2] -- waits
    end)
    if i > 0 then times[i] = seconds / 10 end
  end
  return 2 * 4 * rows * width / figure.median(times)
end

-- ---- products -----------------------------------------------------------------------------------

-- Rows of the first factor, as a multiple of the second: f32 is slow enough with few.
local PRODUCTS = {
  { precision = "bf16", rows = 4 }, { precision = "f16", rows = 4 },
  { precision = "tf32", rows = 2 }, { precision = "f32", rows = 1 },
}

-- Rows of random numbers, chosen from a few so that the host has little to make and to send.
local Input = nn.class("Input")
local CHOICES = 256
function Input:init(rows, width)
  self.table = nn.Embedding(CHOICES, width)
  self.ids = (gp.rand { 1, rows } * CHOICES):to "i64"
end

function Input:forward(x) return self.table(self.ids) * x end

-- Seconds of a step with n products of [rows, width] and [width, width], forward and backward.
local function seconds_of(size, product, n)
  gp.seed(0)
  local layers = { Input(product.rows * size.width, size.width) }
  for i = 1, n do layers[i + 1] = nn.Linear(size.width, size.width, { bias = false }) end
  local pipe <close> = gp.pipeline(nn.Sequential(layers), {
    devices = { "cuda:0" }, checkpoint = "never", precision = product.precision,
    loss = function(output, target) return (output * output):sum() * target:sum(), 1 end,
  })
  local one, times = gp.ones { 1, 1, 1 }, {}
  for i = -3, size.rounds do
    local seconds = figure.seconds(function() pipe:step(one, one) end)
    if i > 0 then times[i] = seconds end
  end
  return figure.median(times)
end

local TRIES = 10 -- as other work on the machine can make the difference negative

-- Seconds of one product.
local function seconds_of_one(size, product)
  for _ = 1, TRIES do
    local seconds = seconds_of(size, product, 2) - seconds_of(size, product, 1)
    if seconds > 0 then return seconds end
  end
  error("a step with two products takes no longer than with one", 0)
end

local function print_product(size, product)
  local seconds = seconds_of_one(size, product)
  local flop = 3 * 2 * product.rows * size.width ^ 3 -- of one layer
  figure.print("gpu.product." .. product.precision, flop / seconds / 1e12,
    ("TFLOP/s, %d x %d by %d x %d, forward and backward"):format(product.rows * size.width,
      size.width, size.width, size.width))
end

--- Print the rates of copies and products. Errors: those of the last product that broke, after the
--- others were measured.
---@param size {rows: integer, width: integer, rounds: integer} copies of rows x 1024 elements of f32
function ceilings.run(size)
  figure.print("gpu.copy", ceilings.copy_rate(size.rows, 1024, size.rounds) / 1e9, "GB/s")
  local broken
  for _, product in ipairs(PRODUCTS) do
    local good, message = pcall(print_product, size, product)
    if not good then
      broken = message
      figure.fail("gpu.product." .. product.precision, message)
    end
    collectgarbage()
  end
  if broken then error(broken, 0) end
end

return ceilings
