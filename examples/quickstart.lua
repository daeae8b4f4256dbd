-- examples/quickstart.lua - train a small GPT on text, byte by byte, over two pipeline stages.
--
--   gpipe-lua examples/quickstart.lua                     the text is this project's own source
--   gpipe-lua examples/quickstart.lua --data book.txt     or yours: a file or a directory
--   gpipe-lua examples/quickstart.lua --run-dir runs/a    keeps the run; the same command resumes
--   it
--   gpipe-lua examples/quickstart.lua --help
local gp = require "gpipe"
local flags, progress = require "gpipe.flags", require "gpipe.progress"
local nn, optim = gp.nn, gp.optim

local opt = flags.parse("Train a byte-level GPT and let it write.", {
  { "--data PATH", nil, "text to learn: a file or a directory (this project's sources)" },
  { "--steps N", 400, "training steps" },
  { "--minutes T", nil, "stop earlier when this time is over (2.7 without --run-dir)",
    number = true },
  { "--batch N", 32, "sequences in a step" },
  { "--context N", 128, "bytes in a sequence" },
  { "--layers N", 4, "transformer blocks" },
  { "--width N", 128, "size of a byte's vector" },
  { "--heads N", 4, "attention heads" },
  { "--lr X", 6e-3, "highest learning rate" },
  { "--stages N", 2, "pipeline stages, a device each: GPUs in turn where there are some" },
  { "--chunks N", 8, "micro-batches in a step" },
  { "--schedule NAME", "1f1b", "any of gp.schedule, as gpipe or zbv" },
  { "--checkpoint WHEN", "never", "recompute activations: always, except_last or never" },
  { "--prompt TEXT", nil, "what the sample starts with" },
  { "--length N", 300, "bytes to write" },
  { "--seed N", 1, "seed of weights, order and sample", min = 0 },
  { "--quiet", false, "no progress line" },
}, arg, { run = true })
gp.seed(opt.seed)

-- ---- the text --------------------------------------------------------------------------------

-- Without --data the text is the sources and documents of this project, found from where this
-- script lies. An installation has only the documents and the examples.
local root = (arg[0]:match("^(.*/)[^/]*$") or "./") .. "../"

local function existing(names)
  local found = {}
  for _, name in ipairs(names) do
    local file = io.open(root .. name)
    if file then file:close() end
    found[#found + 1] = file and root .. name
  end
  return found
end

local corpus = existing { "README.md", "docs", "lua", "bindings", "runtime", "scripts", "tests" }
if #corpus < 3 then corpus = existing { "README.md", "docs", "examples" } end

local text = assert(gp.data.bytes {
  path = opt.data, files = not opt.data and corpus or nil, context = opt.context,
})
local train, valid = text:shuffle(opt.seed):split(0.9)

-- ---- the model: any list of layers -----------------------------------------------------------

local Embed = nn.class("Embed") -- which byte, and where it stands

function Embed:init(context, width)
  local init = nn.init.normal(0, 0.1)
  self.byte = nn.Embedding(256, width, { init = init })
  self.place = nn.Parameter({ context, width }, init)
end

function Embed:forward(ids) return self.byte(ids) + self.place:narrow(1, 1, ids.shape[2]) end

local function block(width, heads)
  return nn.Sequential {
    nn.Residual(nn.Sequential { nn.LayerNorm(width), nn.CausalSelfAttention(width, heads) }),
    nn.Residual(nn.Sequential {
      nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU("tanh"),
      nn.Linear(4 * width, width),
    }),
  }
end

local layers = { { "embed", Embed(opt.context, opt.width) } }
for _ = 1, opt.layers do layers[#layers + 1] = block(opt.width, opt.heads) end
layers[#layers + 1] = { "norm", nn.LayerNorm(opt.width) }
layers[#layers + 1] = { "head", nn.Linear(opt.width, 256) }
local model = nn.Sequential(layers)

-- ---- the pipeline ----------------------------------------------------------------------------

local pipe <close> = gp.pipeline(model, {
  devices = opt.stages, chunks = opt.chunks, schedule = opt.schedule,
  checkpoint = opt.checkpoint, loss = nn.CrossEntropyLoss(),
})
local parameters = pipe:parameters()
local adam = optim.AdamW(parameters, { lr = opt.lr, weight_decay = 0.1 })
local rate = optim.schedule.cosine {
  steps = opt.steps, warmup = math.min(20, opt.steps), max = opt.lr, min = opt.lr / 10,
}
print(pipe)

-- ---- training --------------------------------------------------------------------------------

-- The mean loss over a few batches that are not trained on, in nats per byte.
local function validate(batches)
  local sum, count = 0, 0
  for x, y in valid:batches(opt.batch) do
    sum, count = sum + pipe:evaluate(x, y), count + 1
    if count == batches then break end
  end
  return sum / count
end

local run <close> = gp.run("quickstart", {
  flags = opt, pipe = pipe, opt = adam, steps = opt.steps, unit = "bytes",
  minutes = opt.minutes or not opt["run-dir"] and 2.7 or nil,
  data = gp.data.epochs(train, { batch = opt.batch, seed = opt.seed }),
})
for step, x, y in run:steps() do
  adam.lr = rate(step)
  local values = { loss = pipe:step(x, y), lr = adam.lr }
  optim.clip_grad_norm(parameters, 1)
  adam:step()
  if step % 50 == 0 then values.val_loss = validate(4) end
  run:log(step, values, x:numel())
end
run:finish()
print(("validation loss %.3f nats per byte after %d steps in %s"):format(validate(16), run.step,
  progress.clock(run:elapsed())))

-- ---- writing ---------------------------------------------------------------------------------

-- The model sees the last `context` bytes. A short text is padded at the end, where causal
-- attention does not look, so the shape is always the same.
local function next_byte(bytes)
  local first = math.max(1, #bytes - opt.context + 1)
  local window = table.move(bytes, first, #bytes, 1, {})
  local last = #window
  for i = last + 1, opt.context do window[i] = 0 end
  local scores = pipe:forward(gp.tensor({ window }, { dtype = "i64" }))[1][last]
  local share, at = (scores / 0.8):softmax(1):totable(), math.random()
  for byte = 0, 255 do
    at = at - share[byte + 1]
    if at <= 0 then return byte end
  end
  return 255
end

pipe:eval()
math.randomseed(opt.seed)
local bytes = { (opt.prompt or opt.data and "The " or "local function "):byte(1, -1) }
for _ = 1, opt.length do bytes[#bytes + 1] = next_byte(bytes) end
for i, byte in ipairs(bytes) do bytes[i] = string.char(byte) end
local sample = table.concat(bytes):gsub("[^%g%s\128-\255]", "?") -- no control characters
print("---- a sample\n" .. sample .. "\n----")
local longer = "next: gpipe-lua %s --data YOUR.txt --width 256 --layers 6 --steps 2000 --minutes 60"
print(longer:format(arg[0]))
