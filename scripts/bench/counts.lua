-- scripts/bench/counts.lua - a training step by counting: launches, bytes and FLOP of each op, as a
-- plan for one GPU has them, with fused ops and without. Nothing runs, and no GPU is needed.
--
-- Bytes are the cost model's: each operand is read or written once. Milliseconds are those bytes at
-- the rate of a copy, so they are the least that ops which wait for memory take; products and
-- convolutions take longer by their FLOP.
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local gp = require "gpipe"
local figure = require "figure"
local flags = require "gpipe.flags"
local nn = gp.nn

local opt = flags.parse("Count launches and bytes of a training step on a GPU.", {
  { "--only NAME", "", "a model: resnet, amoebanet, gpt2" },
  { "--images N", 256, "images in a step of ResNet-50" },
  { "--cells N", 32, "images in a step of AmoebaNet-D (18 cells, 256 filters)" },
  { "--batch N", 16, "sequences of 1,024 tokens in a step of GPT-2" },
  { "--chunks N", 1, "micro-batches" }, { "--rate N", 3800, "GB/s of a copy" },
  { "--ops N", 12, "lines of ops for each model, those that move most first" },
  { "--precision NAME", "bf16", "of the step" },
}, arg)

local function images(n) return gp.zeros { n, 3, 224, 224 } end
local function ids(...) return gp.zeros({ ... }, { dtype = "i64" }) end

local MODELS = {
  { "resnet", function() return gp.models.resnet(50) end,
    function() return { images(opt.images), ids(opt.images) } end },
  { "amoebanet", function() return gp.models.amoebanetd { layers = 18, filters = 256 } end,
    function() return { images(opt.cells), ids(opt.cells) } end },
  { "gpt2", function() return gp.models.gpt2 "small" end,
    function() return { ids(opt.batch, 1024), ids(opt.batch, 1024) } end },
}

-- Returns {[op] = {count, flop, bytes}} of a step, and the sums.
local function count(make, sample, fuse)
  local dry = gp.dry_run(make(), {
    devices = { {} }, chunks = opt.chunks, loss = nn.CrossEntropyLoss(), sample = sample, fuse = fuse,
    precision = opt.precision, checkpoint = "never",
  })
  local ops, all = {}, { count = 0, flop = 0, bytes = 0 }
  for act, times in pairs { P = 1, F = opt.chunks, B = opt.chunks } do
    for name, op in pairs(dry.core:ops(dry.core, 0, act)) do
      local sum = ops[name] or { name = name, count = 0, flop = 0, bytes = 0 }
      ops[name] = sum
      for field, n in pairs(op) do
        sum[field], all[field] = sum[field] + times * n, all[field] + times * n
      end
    end
  end
  return ops, all
end

local function milliseconds(bytes) return bytes / opt.rate / 1e6 end

local function print_ops(model, ops)
  local list = {}
  for _, op in pairs(ops) do list[#list + 1] = op end
  table.sort(list, function(a, b) return a.bytes > b.bytes end)
  for i = 1, math.min(opt.ops, #list) do
    local op = list[i]
    print(("counts.%s.%s %d launches %.2f GB %.2f ms %.2f TFLOP"):format(model, op.name, op.count,
      op.bytes / 1e9, milliseconds(op.bytes), op.flop / 1e12))
  end
end

for _, model in ipairs(MODELS) do
  local name, make, sample = table.unpack(model)
  if opt.only == "" or opt.only == name then
    local data = sample()
    local ops, fused = count(make, data, true)
    local _, apart = count(make, data, false)
    print_ops(name, ops)
    figure.print("counts." .. name .. ".launches", fused.count, ("of %d"):format(apart.count))
    figure.print("counts." .. name .. ".bytes", fused.bytes / 1e9,
      ("GB of %.1f: %.1f ms less"):format(apart.bytes / 1e9,
        milliseconds(apart.bytes - fused.bytes)))
  end
end
