-- examples/transformer-lm/train.lua - a Transformer language model of subwords, as in PyTorch's
-- tutorial on pipeline parallelism: sinusoidal positions, norms after the sums, an untied head.
--
--   gpipe-lua examples/transformer-lm/train.lua --data wiki.train.tokens --tokenizer gpt2
--   gpipe-lua examples/transformer-lm/train.lua --synthetic
local folder = arg[0]:match "^(.*/)[^/]*$" or "./"
package.path = folder .. "../shared/?.lua;" .. package.path
local gp = require "gpipe"
local flags = require "gpipe.flags"
local language = require "language"
local nn, optim = gp.nn, gp.optim

local opt = flags.parse("Train a Transformer language model.", {
  { "--data PATH", nil, "a text file, or a folder of them" },
  { "--tokenizer PATH", folder .. "../data/tokenizer",
    "tokenizer.json, or a folder with vocab.json and merges.txt" },
  { "--synthetic", false, "generated sentences, and a model that learns them in seconds" },
  { "--layers N", 8, "Transformer layers" },
  { "--width N", 512, "size of a token's vector" },
  { "--heads N", 8, "attention heads" },
  { "--ff N", 2048, "width between the two products of a layer" },
  { "--context N", 128, "tokens in a sequence" },
  { "--dropout X", 0.2, "dropout of the embedding and the layers" },
  { "--steps N", 2000, "updates" },
  { "--batch N", 32, "sequences in a step" },
  { "--lr X", 5e-4, "largest learning rate of Adam" },
  { "--balance LIST", nil, "layers of each stage, such as 5,5" },
  { "--stages N", 2, "pipeline stages, a device each, without --balance" },
  { "--chunks N", 4, "micro-batches in a step" },
  { "--log N", 10, "steps between two lines" },
  { "--prompt TEXT", "The", "what the sample begins with" },
  { "--length N", 60, "tokens to write" },
  { "--seed N", 1, "seed of weights, order and sample", min = 0 },
  { "--quiet", false, "no line of progress" },
}, arg, { run = true })
gp.seed(opt.seed)

-- ---- data -------------------------------------------------------------------------------------

local made
if opt.synthetic then
  opt.layers, opt.width, opt.heads, opt.ff, opt.context = 2, 64, 2, 128, 32
  opt.steps, opt.batch, opt.lr, opt.dropout = math.min(opt.steps, 300), 16, 3e-3, 0.1
  made = language.temporary(table.concat(language.sentences(2000), "\n"))
elseif not opt.data then
  language.missing "WikiText-2 (huggingface.co/datasets/Salesforce/wikitext), or any text"
end
local tok = assert(gp.tokenizer(opt.tokenizer))
local text = assert(gp.data.text {
  path = made or opt.data, tokenizer = tok, context = opt.context,
})
if made then os.remove(made) end
local train, valid = text:shuffle(opt.seed):split(0.9)

-- ---- model, pipeline, training ------------------------------------------------------------------

local model = gp.models.transformer_lm {
  vocabulary = #tok, layers = opt.layers, width = opt.width, heads = opt.heads, ff = opt.ff,
  context = opt.context, dropout = opt.dropout,
}
local pipe <close> = gp.pipeline(model, {
  balance = opt.balance and language.balance(opt.balance),
  devices = not opt.balance and opt.stages or nil,
  chunks = opt.chunks, loss = nn.CrossEntropyLoss(),
})
print(pipe)
local adam = optim.Adam(pipe:parameters(), { lr = opt.lr })
pipe:use(adam, { clip_norm = 0.5 })
local rate = optim.schedule.cosine {
  steps = opt.steps, warmup = math.min(100, opt.steps // 10), max = opt.lr, min = opt.lr / 20,
}
language.train("transformer-lm", pipe, adam, train, opt, rate)
local loss = language.loss(pipe, valid, opt.batch, 16)
print(("validation loss %.3f, perplexity %.2f"):format(loss, math.exp(loss)))

language.sample(pipe, tok:encode(opt.prompt, { add_special = false }),
  { length = opt.length, temperature = 0.8, top_k = 40, seed = opt.seed },
  function(ids) return tok:decode(ids) end)
