-- gpipe/data/image/mnist.lua - opens the handwritten digits of MNIST, and data sets in the same
-- format (Fashion-MNIST, KMNIST).

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local options = require "gpipe.options"
local pixels = require "gpipe.data.image.pixels"

local mnist = {}

local WHERE = "https://ossci-datasets.s3.amazonaws.com/mnist/"
local PREFIX = { train = "train", test = "t10k" }
local USUAL = { mean = { 0.1307 }, deviation = { 0.3081 } }

local SPEC = { split = { type = "string", choices = { "train", "test" }, default = "train" } }
for name, rule in pairs(pixels.SPEC) do SPEC[name] = rule end

local function names_of(split, what, rank)
  local a, b = ("%s-%s-idx%d-ubyte"):format(PREFIX[split], what, rank),
    ("%s-%s.idx%d-ubyte"):format(PREFIX[split], what, rank)
  return { a, a .. ".gz", b, b .. ".gz" }
end

local function read(path, split, what, rank)
  local names = names_of(split, what, rank)
  local file = pixels.find({ path, path .. "/MNIST/raw", path .. "/raw" }, names)
  if not file then
    return nil, ("%s: there is no %s(.gz), which can be had from %s"):format(errors.path(path),
      names[1], WHERE), "io"
  end
  local values, message, code = core.idx_read(file, rank)
  return values, message or file, code
end

-- Check that labels are ids from 0 to 9, so that a flipped bit does not reach a loss.
local function check_labels(path, images, labels)
  if images:size(1) ~= labels:size(1) or images:size(1) == 0 then
    return nil, ("%s: %d labels for %d images, expected the same number, at least 1"):format(path,
      labels:size(1), images:size(1)), "format"
  end
  local y = labels:to("i64")
  local highest, at = y:max(1)
  if highest:item() > 9 then
    return nil, ("%s: byte %d: the label is %d, expected less than 10"):format(path,
      at:item() + 7, highest:item()), "format"
  end
  return y
end

---@class gpipe.MnistOptions
---@field path string the folder with the files
---@field split? string "train" (the default) or "test"
---@field normalise? boolean|table true (the default): with the usual mean 0.1307 and deviation
--- 0.3081; false: values in [0, 1]; or {mean = {...}, deviation = {...}}

--- Open the files of MNIST in a folder, as they are downloaded (also compressed by gzip). x: f32
--- [1, 28, 28]; y: i64 ids from 0. The bytes are kept as they are, and become floats when a batch
--- is made.
--- Errors: wrong options raise; nil, message, code for files that are not there (with where to
--- get them) or that are damaged.
--- ```lua
--- local d, message = gp.data.mnist{path = "data/mnist", split = "test"}
--- if d then
---   for x, y in d:batches(100) do print(x.shape[3], y[1]) end
--- else
---   print(message)
--- end
--- ```
---@param opts gpipe.MnistOptions
---@return gpipe.Dataset?
---@return string? message
---@return string? code
function mnist.open(opts)
  opts = options.check("data.mnist", opts, SPEC)
  local mean, deviation = pixels.normalisation("data.mnist", opts.normalise, USUAL)
  local images, message, code = read(opts.path, opts.split, "images", 3)
  if not images then return nil, message, code end
  local labels, file
  labels, file, code = read(opts.path, opts.split, "labels", 1)
  if not labels then return nil, file, code end
  local y
  y, message, code = check_labels(file, images, labels)
  if not y then return nil, message, code end
  local n, h, w = table.unpack(images.shape)
  return pixels.new {
    name = ("MNIST, %s [1x%dx%d]"):format(opts.split, h, w), x = images:reshape { n, 1, h, w },
    y = y, rule = { mean = mean, deviation = deviation },
  }
end

return mnist
