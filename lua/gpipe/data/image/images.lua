-- gpipe/data/image/images.lua - folders of PNG and JPEG files, one for each class.

local core = require "gpipe.core"
local options = require "gpipe.options"
local pixels = require "gpipe.data.image.pixels"

local images = {}

-- Mean and deviation of ImageNet, as they are usually given.
local USUAL = { mean = { 0.485, 0.456, 0.406 }, deviation = { 0.229, 0.224, 0.225 } }
local ENDINGS = { png = true, jpg = true, jpeg = true }
-- Formats that torchvision reads but this does not. Leaving such files out would lose data
-- silently.
local OTHERS = { bmp = true, pgm = true, ppm = true, tif = true, tiff = true, webp = true }

local SPEC = {
  size = { type = "integer", min = 1, max = 4096, default = 224 },
  train = { type = "boolean", default = false },
}
for name, rule in pairs(pixels.SPEC) do SPEC[name] = rule end

local function refuse(file)
  return nil, ("%s: an image of another kind, expected .png and .jpg files"):format(file), "format"
end

-- Find the image files below a folder in the order of their names, and for each the name of the
-- folder that it lies in.
local function find(path)
  local list, message, code = core.file_list(path)
  if not list then return nil, message, code end
  local files, names, seen = {}, {}, {}
  local classes = {}
  for _, file in ipairs(list) do
    local class = file:sub(#path + 1):match "^/*([^/]+)/"
    local ending = (file:match "%.(%w+)$" or ""):lower()
    if class and OTHERS[ending] then return refuse(file) end
    if class and ENDINGS[ending] then
      files[#files + 1], names[#names + 1] = file, class
      if not seen[class] then classes[#classes + 1] = class end
      seen[class] = true
    end
  end
  table.sort(classes)
  return files, names, classes
end

local function ids_of(names, classes)
  local id, labels = {}, {}
  for i, class in ipairs(classes) do id[class] = i - 1 end
  for i, name in ipairs(names) do labels[i] = id[name] end
  return core.tensor(labels, "i64")
end

---@class gpipe.ImagesOptions
---@field path string a folder with a folder of PNG and JPEG files for each class
---@field size? integer height and width of the result; default 224
---@field train? boolean random areas and flips; default false: the centre
---@field normalise? boolean|table true (the default): with ImageNet's mean and deviation; false:
--- values in [0, 1]; or {mean = {...}, deviation = {...}}

--- Open a folder that has one folder of images for each class. x: f32 [3, size, size]; y: i64 ids
--- from 0 in the order of the folders' names, `d.classes`. Files are read when a batch is made, by
--- threads (2 unless batches says otherwise). With `train` a random area of 8 to 100 % with sides
--- of 3:4 to 4:3 is cut out, and one image in two is mirrored; both depend on the shuffle's seed
--- and the image. Otherwise the centre is taken, 224 of 256 parts of the shorter side. Images are
--- resized by a triangle filter (bilinear with antialias).
--- Errors: wrong options raise; nil, message, code for a folder that cannot be read, holds no
--- images, or images of other kinds (.bmp, .tif, .webp, .ppm). A damaged image raises at its batch,
--- with its path.
--- ```lua
--- local d, message = gp.data.images{path = "data/imagenet/train", size = 160, train = true}
--- if d then print(#d, d.classes[1]) else print(message) end
--- ```
---@param opts gpipe.ImagesOptions
---@return gpipe.Dataset?
---@return string? message
---@return string? code
function images.open(opts)
  opts = options.check("data.images", opts, SPEC)
  local mean, deviation = pixels.normalisation("data.images", opts.normalise, USUAL)
  local files, names, classes = find(opts.path)
  if not files then return nil, names, classes end
  if #files == 0 then
    return nil, ("%s: there are no images, expected folders of .png and .jpg files, one for each "
      .. "class"):format(opts.path), "io"
  end
  local rule = { size = opts.size, random_crop = opts.train, flip = opts.train, mean = mean,
    deviation = deviation }
  return pixels.wrap {
    items = core.items_files(files, ids_of(names, classes), rule), count = #files,
    classes = classes, name = ("images [3x%dx%d]"):format(opts.size, opts.size),
  }
end

return images
