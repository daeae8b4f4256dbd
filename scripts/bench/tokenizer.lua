-- scripts/bench/tokenizer.lua - text to ids and back on one core, by kinds of text and of rules.
--
-- The text comes from the repository. The slowest realistic text counts: code and prose under the
-- longest rule. Random bytes repeat no word and are the worst case. Seconds are processor time,
-- because the work has one thread and other programs on the machine must not count.

package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local figure = require "figure"
local flags = require "gpipe.flags"
local gp = require "gpipe"

local opt = flags.parse("Encode and decode text.", {
  { "--megabytes N", 4, "text of each kind" },
  { "--rounds N", 5, "how often; the median counts" },
}, arg)

local LLAMA = [[(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|]]
  .. [[ ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+]]
local FOLDER = "examples/data/tokenizer/"

local function read(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

-- The vocabulary of examples/data under the rule of Llama 3.
local function llama()
  local merges = {}
  for left, right in read(FOLDER .. "merges.txt"):gmatch "([^\n ]+) ([^\n ]+)\n" do
    local pair = ("%s %s"):format(left, right):gsub('[\\"]', "\\%0")
    if left ~= "#version:" then merges[#merges + 1] = '"' .. pair .. '"' end
  end
  local path = os.tmpname()
  local file <close> = assert(io.open(path, "wb"))
  file:write('{"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Split",',
    '"pattern": {"Regex": "', LLAMA, '"}, "behavior": "Isolated"},',
    '{"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]},',
    '"model": {"vocab": ', read(FOLDER .. "vocab.json"),
    ', "merges": [', table.concat(merges, ","), "]}}")
  file:close()
  local tokenizer = assert(gp.tokenizer(path))
  os.remove(path)
  return tokenizer
end

-- Reads that many bytes of the files that a command lists.
local function text_of(command, bytes)
  local parts, size = {}, 0
  while size < bytes do
    for path in io.popen(command):lines() do
      parts[#parts + 1] = read(path)
      size = size + #parts[#parts]
    end
  end
  return table.concat(parts):sub(1, bytes)
end

local function seconds(work)
  local before = os.clock()
  work()
  return os.clock() - before
end

local bytes = math.floor(opt.megabytes * 1e6)
local random = gp.randint(0, 256, { bytes }):to("u8"):bytes()
local texts = {
  { "prose", text_of("ls docs/*.md README.md", bytes) },
  { "code", text_of("find runtime lua -name '*.c' -o -name '*.lua'", bytes) },
  { "random", random },
}

for _, tokenizer in ipairs { { "gpt2", gp.tokenizer(FOLDER) }, { "llama3", llama() } } do
  for _, text in ipairs(texts) do
    local tok, name = tokenizer[2], ("tokenizer.%s.%s"):format(tokenizer[1], text[1])
    local encode, decode = {}, {}
    for i = 1, opt.rounds do
      local ids
      encode[i] = #text[2] / 1e6 / seconds(function() ids = tok:encode(text[2]) end)
      decode[i] = #text[2] / 1e6 / seconds(function() tok:decode(ids) end)
    end
    figure.print(name, figure.median(encode), "MB/s", ">=", 5)
    figure.print(name .. ".decode", figure.median(decode), "MB/s")
  end
end
