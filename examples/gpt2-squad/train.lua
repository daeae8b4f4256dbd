-- examples/gpt2-squad/train.lua - GPT-2 is fine-tuned on the contexts of SQuAD over four devices,
-- and then writes: the usual tutorial of pipeline trainers.
--
--   gpipe-lua examples/gpt2-squad/train.lua --model gpt2 --squad train-v1.1.json
--   gpipe-lua examples/gpt2-squad/train.lua --synthetic
--
-- Embedding and head share one table of 50,257 x 768 and lie on the first and the last device: it
-- is one parameter, whose gradients are added before the update.
local folder = arg[0]:match "^(.*/)[^/]*$" or "./"
package.path = folder .. "../shared/?.lua;" .. package.path
local gp = require "gpipe"
local flags = require "gpipe.flags"
local language = require "language"
local nn, optim = gp.nn, gp.optim

local opt = flags.parse("Fine-tune GPT-2 on SQuAD's contexts.", {
  { "--squad FILE", nil, "train-v1.1.json of SQuAD" },
  { "--model DIR", nil, "pretrained weights: config.json and model.safetensors" },
  { "--size NAME", "small", "without --model: small, medium, large or xl, random weights" },
  { "--tokenizer DIR", nil, "folder with vocab.json and merges.txt; default that of --model" },
  { "--synthetic", false, "generated contexts, and random weights of a small model" },
  { "--balance LIST", "4,3,3,4", "layers of each stage; a GPT-2 has two more layers than blocks" },
  { "--context N", 128, "tokens in a sequence" },
  { "--steps N", 200, "updates" },
  { "--batch N", 16, "sequences in a step" },
  { "--chunks N", 4, "micro-batches in a step" },
  { "--lr X", 3e-5, "learning rate of Adam" },
  { "--log N", 10, "steps between two lines" },
  { "--prompt TEXT", "The university", "what the sample begins with" },
  { "--length N", 40, "tokens to write" },
  { "--temperature X", 0.8, "0 takes the most likely token" },
  { "--top-k N", 40, "draw from so many most likely tokens" },
  { "--save DIR", nil, "write the weights there, as transformers reads them", writes = "folder" },
  { "--seed N", 1, "seed of weights, order and sample", min = 0 },
  { "--quiet", false, "no lines of steps" },
}, arg, { run = true })
gp.seed(opt.seed)

-- ---- data -------------------------------------------------------------------------------------

-- Generated contexts in SQuAD's form: four sentences each.
local function synthetic()
  local contexts, sentences = {}, language.sentences(800)
  for i = 1, #sentences, 4 do
    contexts[#contexts + 1] = ('{"context": "%s", "qas": []}'):format(
      table.concat(sentences, " ", i, i + 3))
  end
  return language.temporary(('{"data": [{"title": "none", "paragraphs": [%s]}]}'):format(
    table.concat(contexts, ",")))
end

local made
if opt.synthetic then
  made = synthetic()
  opt.tokenizer = opt.tokenizer or folder .. "../data/tokenizer"
  opt.context, opt.lr = math.min(opt.context, 32), 3e-3
elseif not opt.squad or not (opt.model or opt.tokenizer) then
  language.missing("train-v1.1.json is at rajpurkar.github.io/SQuAD-explorer (--squad), "
    .. "GPT-2 at huggingface.co/openai-community/gpt2 (--model)")
end
local tok = assert(gp.tokenizer(opt.tokenizer or opt.model))
local data = assert(gp.data.squad {
  path = made or opt.squad, tokenizer = tok, context = opt.context,
})
if made then os.remove(made) end
local train, valid = data:shuffle(opt.seed):split(0.95)

-- ---- model and pipeline -------------------------------------------------------------------------

local model
if opt.model then
  model = assert(gp.models.gpt2.load(opt.model))
elseif opt.synthetic then
  model = gp.models.gpt2 { layers = 12, width = 48, heads = 4, context = 64, vocabulary = #tok,
    dropout = 0 }
else
  model = gp.models.gpt2(opt.size)
end

local pipe <close> = gp.pipeline(model, {
  balance = language.balance(opt.balance), chunks = opt.chunks, loss = nn.CrossEntropyLoss(),
})
print(pipe)
local adam = optim.Adam(pipe:parameters(), { lr = opt.lr })
pipe:use(adam)

-- ---- training, then writing ---------------------------------------------------------------------

local before = language.loss(pipe, valid, opt.batch, 8)
language.train("gpt2-squad", pipe, adam, train, opt)
local after = language.loss(pipe, valid, opt.batch, 8)
print(("validation loss %.3f, before %.3f"):format(after, before))
if opt.save then
  assert(gp.models.gpt2.save(pipe, opt.save))
  print("saved in " .. opt.save)
end
language.sample(pipe, tok:encode(opt.prompt, { add_special = false }), {
  length = opt.length, temperature = opt.temperature, top_k = opt["top-k"], seed = opt.seed,
  stop = tok.special["<|endoftext|>"],
}, function(ids) return tok:decode(ids) end)
