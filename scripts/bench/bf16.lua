-- scripts/bench/bf16.lua - what bf16 gains on a CPU device: training steps of a byte GPT against
-- f32's, and against PyTorch's autocast where a Python with PyTorch is installed.
--
-- Two pipelines take turns. The path of bf16 products is printed first, because the bounds are
-- those of AVX512_BF16 and AMX. PyTorch runs in GPIPE_PEER_PYTHON, with the script of GPIPE_PEER_FOLDER.
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local core = require "gpipe.core"
local gp = require "gpipe"
local figure, model = require "figure", require "model"
local flags = require "gpipe.flags"

local opt = flags.parse("Compare training steps in bf16 with f32's, and with PyTorch's.", {
  { "--rounds N", 9, "turns" }, { "--threads N", 2, "of the device" },
  { "--layers N", 6, "blocks" }, { "--width N", 384, "width" }, { "--heads N", 6, "heads" },
  { "--context N", 256, "tokens in a sequence" }, { "--batch N", 8, "sequences in a step" },
  { "--chunks N", 1, "micro-batches" },
}, arg)

local ids = model.bytes(opt)

-- The least speed of each path, as a multiple of f32's.
local BOUNDS = { avx512_bf16 = 1.4, amx_bf16 = 2.5 }

local function open(precision)
  gp.seed(0)
  local pipe = gp.pipeline(model.gpt(opt), {
    devices = model.devices(1, opt.threads), chunks = opt.chunks, checkpoint = "never",
    loss = gp.nn.CrossEntropyLoss(), precision = precision,
  })
  local adam = gp.optim.AdamW(pipe:parameters(), { lr = 3e-4 })
  return function()
    local loss = pipe:step(ids, ids)
    adam:step()
    return loss
  end
end

local wide, narrow = open "f32", open "bf16"
local path, lacks = core.bf16_path()
print(("bf16.path %s%s"):format(path, lacks and (" (%s)"):format(lacks) or ""))
figure.print("bf16.loss", math.abs(narrow() / wide() - 1), "from f32's, relative", "<=", 0.01)
local times = figure.alternate(opt.rounds, { wide = function() wide() end,
  narrow = function() narrow() end }, { "wide", "narrow" })
figure.print("bf16.step", figure.median(figure.ratios(times.wide, times.narrow)), "of f32's rate",
  BOUNDS[path] and ">=", BOUNDS[path])

-- ---- PyTorch -----------------------------------------------------------------------------------

local python = os.getenv "GPIPE_PEER_PYTHON" or "/opt/peers/bin/python"
local folder = os.getenv "GPIPE_PEER_FOLDER" or (arg[0]:match("^.*/") or "./") .. "../../../shared/peers"
local command = ("%s %s --dtype bf16 --threads %d --steps %d --layers %d --width %d --heads %d "
  .. "--ctx %d --batch %d 2>&1"):format(figure.quote(python),
  figure.quote(folder .. "/gpt_torch.py"), opt.threads, opt.rounds, opt.layers, opt.width,
  opt.heads, opt.context, opt.batch)
local text = figure.capture(command) or ""
local rate = tonumber(text:match "tok/s=([%d.]+)")
if not rate then
  print "bf16.torch skipped: no PyTorch (set GPIPE_PEER_PYTHON, GPIPE_PEER_FOLDER)"
  return
end
-- Our bf16 runs again right after PyTorch, which it is compared with.
local again = figure.alternate(opt.rounds, { narrow = function() narrow() end }, { "narrow" })
local tokens = opt.batch * opt.context / figure.median(again.narrow)
figure.print("bf16.tokens", tokens, "tok/s")
figure.print("bf16.torch", tokens / rate, "of PyTorch's bf16 rate", ">=", 2)
