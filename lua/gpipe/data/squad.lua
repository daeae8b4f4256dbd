-- lua/gpipe/data/squad.lua - SQuAD as data: its contexts as windows of ids, or its questions as
-- items.

local core = require "gpipe.core"
local dataset = require "gpipe.data.dataset"
local encode = require "gpipe.data.encode"
local errors = require "gpipe.errors"
local options = require "gpipe.options"
local windows = require "gpipe.data.windows"

local squad = {}

local IGNORED = -100 -- the target that nn.CrossEntropyLoss {ignore_index = -100} ignores

-- ---- questions ---------------------------------------------------------------------------------

local Source = { gap = 0 }
Source.__index = Source

function Source:describe() return ("%d ids"):format(self.context) end

local function check_text(value, what)
  if type(value) == "string" then return value end
  errors.raise("data.squad: the option 'text' returned %s as %s, expected a text",
    errors.show(value), what)
end

-- Return the ids of an item and how many of them are the prompt. An item that is too long loses the
-- beginning of its prompt, or its end if there is no prompt.
local function ids_of(self, i)
  local prompt, answer = self.text(core.squad_question(self.squad, i))
  local opts = { special = self.special, add_special = false }
  local ids = self.tokenizer:encode(check_text(prompt, "the text"), opts):totable()
  local asked = 0
  if answer ~= nil then
    asked = #ids
    local more = self.tokenizer:encode(check_text(answer, "the answer"), opts):totable()
    table.move(more, 1, #more, #ids + 1, ids)
  end
  if self.separator then ids[#ids + 1] = self.separator end
  local cut = math.min(asked, math.max(0, #ids - self.context - 1))
  return table.move(ids, cut + 1, cut + self.context + 1, 1, {}), asked - cut
end

local function row_of(self, i)
  local ids, asked = ids_of(self, i)
  local x, y = {}, {}
  for k = 1, self.context do
    x[k] = ids[k] or self.separator or 0
    y[k] = k >= asked and ids[k + 1] or IGNORED
  end
  return x, y
end

function Source:gather(positions)
  local x, y = {}, {}
  for n, i in ipairs(positions) do x[n], y[n] = row_of(self, i) end
  return core.tensor(x, "i64"), core.tensor(y, "i64")
end

-- ---- opening -----------------------------------------------------------------------------------

local SPEC = {
  path = { type = "string", required = true }, text = { type = "callable" },
}
for name, rule in pairs(encode.SPEC) do SPEC[name] = rule end

local function contexts_of(file, count, opts, separator)
  local ids, width, code = encode.all(opts, separator, function(take)
    for i = 1, count do take(core.squad_context(file, i)) end
    return true
  end)
  if not ids then return nil, width, code end
  return windows.new {
    ids = ids, width = width, context = opts.context, stride = opts.stride, unit = "ids",
    name = "data.squad: " .. opts.path, files = 1,
  }
end

---@class gpipe.SquadOptions
---@field path string train-v1.1.json, dev-v2.0.json or a file of that form
---@field tokenizer gpipe.Tokenizer
---@field context integer ids of input in an item
---@field stride? integer of windows; default context
---@field text? fun(example: table): string, string? makes each question an item: returns its text
---@field separator? string|boolean a token that follows each text; default `<|endoftext|>` where
--- the tokenizer has it; false: none
---@field special? boolean special tokens in the texts become their ids (true)

--- Open SQuAD's JSON (versions 1.1 and 2.0). Without `text` the data is all contexts, one after the
--- other with the separator after each, as windows of `context` + 1 ids whose targets are shifted
--- by one, for fine-tuning a language model on them.
---
--- With `text` each question is an item: the function gets {id, title, context, question,
--- impossible, answers = {{text, start}, ...}} (start: the position of a character in the context,
--- from 1) and returns a text, or a prompt and an answer. Targets are -100 in the prompt and behind
--- the end (nn.CrossEntropyLoss {ignore_index = -100}). An item that is longer than context + 1 ids
--- loses the beginning of its prompt, or its end if there is no prompt.
--- Errors: wrong options raise; nil, message, code for a file that cannot be read or is damaged,
--- with the byte.
--- ```lua
--- local path = os.tmpname()
--- assert(io.open(path, "wb")):write('{"data": [{"title": "T", "paragraphs": [{"context": ',
---   '"Lua is a language from Rio.", "qas": [{"id": "1", "question": "What is Lua?", "answers": ',
---   '[{"text": "a language", "answer_start": 7}]}]}]}]}'):close()
--- local tok = assert(gp.tokenizer "examples/data/tokenizer")
--- local d = assert(gp.data.squad{path = path, tokenizer = tok, context = 8})
--- local questions = assert(gp.data.squad{path = path, tokenizer = tok, context = 32,
---   text = function(e) return e.context .. "\n" .. e.question, " " .. e.answers[1].text end})
--- local x, y = questions:item(1)
--- os.remove(path)
--- ```
---@param opts gpipe.SquadOptions
---@return gpipe.Dataset?
---@return string? message
---@return string? code
function squad.open(opts)
  opts = options.check("data.squad", opts, SPEC)
  local separator = encode.separator("data.squad", opts)
  local file, contexts, questions = core.squad_load(opts.path)
  if not file then return nil, contexts, questions end
  if not opts.text then return contexts_of(file, contexts, opts, separator) end
  if questions == 0 then
    return nil, ("data.squad: %s: there are no questions"):format(opts.path), "format"
  end
  return dataset(setmetatable({
    squad = file, text = opts.text, tokenizer = opts.tokenizer, context = opts.context,
    separator = separator, special = opts.special, count = questions,
  }, Source))
end

return squad
