-- examples/char-lm/train.lua - a Transformer learns a text byte by byte: no tokenizer is needed.
--
--   gpipe-lua examples/char-lm/train.lua --data input.txt     any text, or a folder of texts
--   gpipe-lua examples/char-lm/train.lua --synthetic          generated sentences
local folder = arg[0]:match "^(.*/)[^/]*$" or "./"
package.path = folder .. "../shared/?.lua;" .. package.path
local gp = require "gpipe"
local flags = require "gpipe.flags"
local language = require "language"
local nn, optim = gp.nn, gp.optim

local opt = flags.parse("Train a language model of bytes.", {
  { "--data PATH", nil, "a text file, or a folder of them" },
  { "--synthetic", false, "generated sentences, and a model that learns them in seconds" },
  { "--layers N", 6, "Transformer layers" },
  { "--width N", 384, "size of a byte's vector" },
  { "--heads N", 6, "attention heads" },
  { "--context N", 256, "bytes in a sequence" },
  { "--dropout X", 0.1, "dropout of the embedding and the layers" },
  { "--steps N", 5000, "updates" },
  { "--batch N", 64, "sequences in a step" },
  { "--lr X", 1e-3, "largest learning rate of AdamW" },
  { "--stages N", 2, "pipeline stages, a device each" },
  { "--chunks N", 4, "micro-batches in a step" },
  { "--log N", 10, "steps between two lines" },
  { "--prompt TEXT", "The ", "what the sample begins with" },
  { "--length N", 200, "bytes to write" },
  { "--seed N", 1, "seed of weights, order and sample", min = 0 },
  { "--quiet", false, "no line of progress" },
}, arg, { run = true })
gp.seed(opt.seed)

-- ---- data -------------------------------------------------------------------------------------

local made
if opt.synthetic then
  opt.layers, opt.width, opt.heads, opt.context = 2, 64, 2, 64
  opt.steps, opt.batch, opt.lr, opt.dropout = math.min(opt.steps, 400), 16, 3e-3, 0
  made = language.temporary(table.concat(language.sentences(2000), "\n"))
elseif not opt.data then
  language.missing "any text file serves, such as Tiny Shakespeare (github.com/karpathy/char-rnn)"
end
local text = assert(gp.data.bytes { path = made or opt.data, context = opt.context })
local train, valid = text:shuffle(opt.seed):split(0.9)

-- ---- model, pipeline, training ------------------------------------------------------------------

local model = gp.models.transformer_lm {
  vocabulary = 256, layers = opt.layers, width = opt.width, heads = opt.heads,
  context = opt.context, dropout = opt.dropout, norm_first = true, activation = "gelu",
  positions = "learned",
}
local pipe <close> = gp.pipeline(model, {
  devices = opt.stages, chunks = opt.chunks, loss = nn.CrossEntropyLoss(),
})
print(pipe)
local adam = optim.AdamW(pipe:parameters(), { lr = opt.lr, weight_decay = 0.1 })
pipe:use(adam, { clip_norm = 1 })
local rate = optim.schedule.cosine {
  steps = opt.steps, warmup = math.min(100, opt.steps // 10), max = opt.lr, min = opt.lr / 10,
}
language.train("char-lm", pipe, adam, train, opt, rate)
print(("validation loss %.3f nats per byte"):format(language.loss(pipe, valid, opt.batch, 16)))

-- ---- a sample -----------------------------------------------------------------------------------

local function decode(ids)
  local bytes = ids:totable()
  for i, byte in ipairs(bytes) do bytes[i] = string.char(byte) end
  return table.concat(bytes)
end

local prompt = gp.tensor({ opt.prompt:byte(1, -1) }, { dtype = "i64" })
language.sample(pipe, prompt,
  { length = opt.length, temperature = 0.8, top_p = 0.95, seed = opt.seed }, decode)
if made then os.remove(made) end
