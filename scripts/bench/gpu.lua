-- scripts/bench/gpu.lua - what a GPU reaches: copies and products, GPT-2 124M, ResNet-50, single
-- kernels, parts of the GPU as a pipeline; and how exact attention in halves and convolutions are.
--
-- Ratios compare figures of one run on the same GPU. A section that breaks says so and the others
-- go on. The exit code is then 1, or 69 where the machine is at fault: no GPU, one that failed, no
-- memory. The precision that is asked for is used, or the section breaks. scripts/gpu-check runs
-- one section at a time, and PyTorch with the same model where the machine has it.
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local core = require "gpipe.core"
local figure = require "figure"
local errors, flags = require "gpipe.errors", require "gpipe.flags"

local opt = flags.parse("Measure a GPU.", {
  { "--only NAME", "",
    "a section: ceilings, replay, shapes, attention, convolution, gpt, fused, resnet, kernels, "
      .. "parts2, parts4, parts8, pairs, model (GPT-2 as the product has it); once takes a "
      .. "step and prints nothing, losses makes a line of gpu_losses.lua, on a CPU" },
  { "--layers N", 12, "blocks of the GPT" }, { "--width N", 768, "width" },
  { "--heads N", 12, "heads" },
  { "--context N", 1024, "tokens in a sequence" },
  { "--vocabulary N", 50304, "tokens of the vocabulary" },
  { "--batch N", 16, "sequences in a step" }, { "--chunks N", 1, "micro-batches of the GPT" },
  { "--steps N", 12, "timed steps" }, { "--rounds N", 5, "turns of what is compared" },
  { "--rows N", 65536, "rows of the kernels' tensors, of 1,024 elements" },
  { "--kernels NAME", "f32", "the dtype of the kernels: f32, bf16 or f16" },
  { "--product N", 8192, "rows and columns of the products' second factor" },
  { "--tokens N", 1024, "keys and queries of the attention that is compared with f64" },
  { "--side N", 224, "pixels of a side of ResNet's images; an eighth in single convolutions" },
  { "--images N", 32, "images in a step of ResNet" },
  { "--depth N", 50, "layers of ResNet" },
  { "--precision NAME", "bf16", "of the products: bf16, f16, tf32 or f32" },
}, arg)

local BROKEN, MACHINE = 1, 69 -- exit codes; 69 is EX_UNAVAILABLE of sysexits.h
local OF_MACHINE = { device = true, memory = true } -- codes of errors

local status = 0

-- Runs a section of the benchmark; if it breaks, prints a line that says why.
local function section(name, work)
  if opt.only ~= "" and opt.only ~= name then return end
  local good, message = pcall(work)
  if not good then
    status = math.max(status, OF_MACHINE[errors.code_of(message)] and MACHINE or BROKEN)
    figure.fail("gpu." .. name, message)
  end
  collectgarbage()
end

if opt.only == "once" then return require("gpu_gpt").once(opt, opt.precision) end
if opt.only == "losses" then return require("gpu_curve").make(require("gpu_gpt").trainer, opt) end
if not core.gpus() then
  figure.skip("gpu", "no CUDA device")
  os.exit(opt.only == "" and 0 or MACHINE, true) -- a section that was asked for is missing
end

local precision = opt.precision
local kernels = { rows = opt.rows, width = 1024, rounds = opt.rounds, dtype = opt.kernels }
section("ceilings", function()
  require("gpu_ceilings").run { rows = opt.rows, width = opt.product, rounds = opt.rounds }
end)
section("replay", function() require("gpu_replay").run(opt, precision) end)
section("shapes", function() require("gpu_shapes").run(opt, precision) end)
section("attention", function() require("gpu_attention").run(opt.tokens) end)
section("convolution", function() require("gpu_convolution").compare(opt.side // 8) end)
section("resnet", function()
  require("gpu_convolution").train {
    depth = opt.depth, images = opt.images, side = opt.side, steps = opt.steps,
    precision = precision,
  }
end)
section("gpt", function() require("gpu_gpt").run(opt, precision) end)
section("model", function() require("gpu_gpt").run_model(opt, precision) end)
section("fused", function() require("gpu_gpt").compare_fused(opt, precision) end)
section("kernels", function() require("gpu_kernels").run(kernels) end)
local stages = {
  width = opt.width, heads = opt.heads, context = opt.context, rows = 1, steps = 3,
  rounds = opt.rounds,
}
for _, p in ipairs { 2, 4, 8 } do
  section(("parts%d"):format(p), function()
    local parts = require "gpu_parts"
    parts.run(stages, precision, parts.of_gpu(p), ("gpu.parts%d"):format(p))
  end)
end
section("pairs", function() require("gpu_pairs").run(opt, stages, precision) end)
os.exit(status, true)
