-- gpipe/data/image/cifar.lua - CIFAR-10 and CIFAR-100 in their binary form.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local options = require "gpipe.options"
local pixels = require "gpipe.data.image.pixels"

local cifar = {}

local WHERE = "https://www.cs.toronto.edu/~kriz/"

-- Mean and deviation of the training images, as they are usually given.
local KINDS = {
  cifar10 = {
    title = "CIFAR-10", folder = "cifar-10-batches-bin", archive = "cifar-10-binary.tar.gz",
    train = { "data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
      "data_batch_5.bin" },
    test = { "test_batch.bin" },
    usual = { mean = { 0.4914, 0.4822, 0.4465 }, deviation = { 0.2470, 0.2435, 0.2616 } },
    classes = { "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship",
      "truck" },
  },
  cifar100 = {
    title = "CIFAR-100", folder = "cifar-100-binary", archive = "cifar-100-binary.tar.gz",
    train = { "train.bin" }, test = { "test.bin" }, fine = true,
    usual = { mean = { 0.5071, 0.4865, 0.4409 }, deviation = { 0.2673, 0.2564, 0.2762 } },
  },
}

local SPEC = {
  split = { type = "string", choices = { "train", "test" }, default = "train" },
  augment = { type = "boolean", default = false },
}
for name, rule in pairs(pixels.SPEC) do SPEC[name] = rule end

local function open(name, opts)
  local kind, who = KINDS[name], "data." .. name
  opts = options.check(who, opts, SPEC)
  local mean, deviation = pixels.normalisation(who, opts.normalise, kind.usual)
  local paths = {}
  for i, file in ipairs(kind[opts.split]) do
    paths[i] = pixels.find({ opts.path, opts.path .. "/" .. kind.folder }, { file })
    if not paths[i] then
      return nil, ("%s: there is no %s, which is in %s%s"):format(errors.path(opts.path), file,
        WHERE, kind.archive), "io"
    end
  end
  local x, y, code = core.cifar_read(paths, kind.fine)
  if not x then return nil, y, code end
  return pixels.new {
    name = ("%s, %s [3x32x32]"):format(kind.title, opts.split), x = x, y = y,
    classes = kind.classes,
    rule = { mean = mean, deviation = deviation, crop = opts.augment and 4 or 0,
      flip = opts.augment },
  }
end

---@class gpipe.CifarOptions
---@field path string the folder with the files, or the one that the archive was unpacked in
---@field split? string "train" (the default) or "test"
---@field augment? boolean random crops after padding by 4, and random flips; default false
---@field normalise? boolean|table true (the default): with the usual mean and deviation of each
--- channel; false: values in [0, 1]; or {mean = {...}, deviation = {...}}

--- Open the binary version of CIFAR-10. x: f32 [3, 32, 32]; y: i64 ids from 0; `d.classes` has the
--- names. With `augment`, crops and flips are a function of the shuffle's seed and the image:
--- `d:shuffle(epoch)` gives other ones in each epoch.
--- Errors: wrong options raise; nil, message, code for files that are not there (with where to
--- get them) or that are damaged.
--- ```lua
--- local d, message = gp.data.cifar10{path = "data/cifar10", augment = true}
--- if d then print(#d, d.classes[1]) else print(message) end
--- ```
---@param opts gpipe.CifarOptions
---@return gpipe.Dataset?
---@return string? message
---@return string? code
function cifar.open10(opts) return open("cifar10", opts) end

--- Open the binary version of CIFAR-100, with its fine labels. Otherwise as gp.data.cifar10.
--- Errors: as there.
--- ```lua
--- local d, message = gp.data.cifar100{path = "data/cifar100", split = "test"}
--- if d then print(#d) else print(message) end
--- ```
---@param opts gpipe.CifarOptions
---@return gpipe.Dataset?
---@return string? message
---@return string? code
function cifar.open100(opts) return open("cifar100", opts) end

return cifar
