-- tests/spec/data/tokenizer_spec.lua - byte-level tokenizers give the ids of the original and every
-- byte back.
local gp = require "gpipe"
local awkward = require "tests.support.awkward"
local golden = dofile "tests/golden/tokenizer.lua"

local FOLDER = "examples/data/tokenizer"

local function read(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

local function write(text, name)
  local path = name or os.tmpname()
  finally(function() os.remove(path) end)
  local file <close> = assert(io.open(path, "wb"))
  file:write(text)
  return path
end

-- ---- tokenizer.json ----------------------------------------------------------------------------

local function quote(text) return '"' .. text:gsub('[\\"]', "\\%0") .. '"' end

-- Writes merges.txt as the list of a tokenizer.json, of pairs or of texts.
local function merges(pairs)
  local list = {}
  for left, right in read(FOLDER .. "/merges.txt"):gmatch "([^\n ]+) ([^\n ]+)\n" do
    if left ~= "#version:" then
      list[#list + 1] = pairs and ("[%s,%s]"):format(quote(left), quote(right))
        or quote(left .. " " .. right)
    end
  end
  return "[" .. table.concat(list, ",") .. "]"
end

local function put(text, mark, value)
  local first, last = text:find(mark, 1, true)
  return text:sub(1, first - 1) .. value .. text:sub(last + 1)
end

local function file_of(case)
  local vocabulary = read(FOLDER .. "/vocab.json"):gsub("%s+$", "")
  return put(put(case.head, '"@VOCAB@"', vocabulary), '"@MERGES@"', merges(case.pairs))
end

local function case_of(name)
  for _, case in ipairs(golden.cases) do
    if case.name == name then return case end
  end
end

-- ---- digests -----------------------------------------------------------------------------------

local function digest(hash, ids)
  for i = 1, #ids do hash = (hash ~ ids[i]) * 0x100000001B3 end
  return (hash ~ #ids) * 0x100000001B3
end

local texts = {}
for i = 0, golden.texts - 1 do texts[i] = awkward.text(i) end

-- Returns the first text of the first block whose digest differs; nil where all agree.
local function difference(tok, wanted, opts)
  for block = 0, golden.texts // golden.block - 1 do
    local hash = 0xCBF29CE484222325
    for i = block * golden.block, (block + 1) * golden.block - 1 do
      hash = digest(hash, tok:encode(texts[i], opts):totable())
    end
    if ("%06x"):format(hash >> 40) ~= wanted:sub(block * 6 + 1, block * 6 + 6) then
      return block * golden.block
    end
  end
end

describe("ids of ten thousand awkward texts are those of the original:", function()
  for _, case in ipairs(golden.cases) do
    it(case.name, function()
      local tok = assert(gp.tokenizer(write(file_of(case))))
      assert.equal(case.count, #tok)
      assert.is_nil(difference(tok, case.digests))
      if case.plain then
        assert.is_nil(difference(tok, case.plain, { special = false, add_special = false }))
      end
    end)
  end

  it("vocab.json and merges.txt", function()
    local tok = assert(gp.tokenizer(FOLDER))
    assert.is_nil(difference(tok, case_of("gpt2").digests))
  end)
end)

describe("a tokenizer", function()
  local tok = assert(gp.tokenizer(FOLDER))

  it("gives every byte back, whatever the bytes", function()
    for i = 1, 300 do
      local bytes = awkward.bytes(i, i)
      assert.equal(bytes, tok:decode(tok:encode(bytes)))
    end
    for i = 0, 999 do
      local text = texts[i] .. "\xe2\x82" .. texts[i + 1] .. "\xff"
      assert.equal(text, tok:decode(tok:encode(text)))
    end
    for _, case in ipairs(golden.cases) do
      if case.name == "llama3" or case.name == "o200k" or case.name == "starcoder" then
        local other = assert(gp.tokenizer(write(file_of(case))))
        local bytes = awkward.bytes(50000, 3)
        assert.equal(bytes, other:decode(other:encode(bytes, { add_special = false })))
      end
    end
  end)

  it("makes separate words of bytes that are not UTF-8", function()
    local function ids(text) return table.concat(tok:encode(text):totable(), " ") end
    assert.equal(("%s %s %s"):format(ids "the", ids "\xff\xfe", ids " the"),
      ids "the\xff\xfe the")
    assert.equal(1, tok:encode("\xff"):numel())
    assert.equal("the\xff", tok:decode(tok:encode "the\xff"))
  end)

  it("takes a word of a million bytes", function()
    local text = ("a"):rep(1000000)
    assert.equal(text, tok:decode(tok:encode(text)))
  end)

  it("turns an empty text into no ids and back", function()
    assert.equal(0, tok:encode(""):numel())
    assert.equal("", tok:decode {})
    assert.equal("", tok:decode(gp.zeros({ 0 }, { dtype = "i64" })))
  end)

  it("finds special tokens, or leaves them as text", function()
    local last = tok.special["<|endoftext|>"]
    assert.equal(#tok - 1, last)
    assert.same({ last }, tok:encode("<|endoftext|>"):totable())
    local plain = tok:encode("<|endoftext|>", { special = false })
    assert.is_true(plain:numel() > 1)
    assert.equal("<|endoftext|>", tok:decode(plain))
    assert.equal("a b", tok:decode(tok:encode "a<|endoftext|> b", { skip_special = true }))
    local other = assert(gp.tokenizer(FOLDER, { special = { "the", "in" } }))
    assert.same({ the = tok:id "the", ["in"] = tok:id "in" }, other.special)
    assert.equal("on o", other:decode(other:encode "onthe oin", { skip_special = true }))
  end)

  it("looks tokens up by id and by bytes", function()
    for id = 0, #tok - 1 do assert.equal(id, tok:id(tok:token(id))) end
    assert.is_nil(tok:token(#tok))
    assert.is_nil(tok:token(-1))
    assert.is_nil(tok:id "no token")
  end)

  it("decodes tensors of integers, lists, single ids", function()
    local ids = tok:encode "Hello, world"
    assert.equal("Hello, world", tok:decode(ids:to "i32"))
    assert.equal("Hello, world", tok:decode(ids:totable()))
    assert.equal("Hello, worldHello, world", tok:decode(gp.stack({ ids, ids }, 1)))
    assert.equal("!", tok:decode(0))
    for _, wrong in ipairs { { #tok }, { -1 }, { 2 ^ 53 }, { "a" }, gp.ones { 2 }, "text" } do
      assert.is_false(pcall(tok.decode, tok, wrong))
    end
  end)

  it("puts a space before texts where it is asked to", function()
    local spaced = assert(gp.tokenizer(FOLDER, { add_prefix_space = true }))
    assert.same(tok:encode(" the"):totable(), spaced:encode("the"):totable())
    assert.same(tok:encode(" the"):totable(), spaced:encode(" the"):totable())
  end)

  it("names what it knows and what it lacks", function()
    assert.is_truthy(tostring(tok):find("3000 ids", 1, true))
    assert.is_false(pcall(function() return tok.encod end))
    assert.is_false(pcall(gp.tokenizer, FOLDER, { special = { "no token" } }))
    assert.is_false(pcall(gp.tokenizer, FOLDER, { special = { "" } }))
    local nothing, message, code = gp.tokenizer "no/such/file"
    assert.is_nil(nothing)
    assert.is_truthy(message:find("no/such/file", 1, true))
    assert.equal("io", code)
  end)
end)

-- ---- what is refused ---------------------------------------------------------------------------

-- A tokenizer.json with three tokens; each `change` replaces a part of it.
local SMALL = [[{"version": "1.0", "added_tokens": [{"id": 3, "content": "<e>", "special": true}],
  "normalizer": null, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
  "post_processor": null, "decoder": {"type": "ByteLevel"},
  "model": {"type": "BPE", "dropout": null, "vocab": {"a": 0, "b": 1, "ab": 2},
    "merges": ["a b"]}}]]

local UNSUPPORTED = {
  { '"normalizer": null', '"normalizer": {"type": "NFC"}', "NFC" },
  { '"type": "BPE"', '"type": "Unigram"', "Unigram" },
  { '"dropout": null', '"dropout": 0.1', "dropout" },
  { '"dropout": null', '"end_of_word_suffix": "</w>"', "end_of_word_suffix" },
  { '"dropout": null', '"continuing_subword_prefix": "##"', "continuing_subword_prefix" },
  { '"version": "1.0"', '"version": "2.0"', "2.0" },
  { '"version": "1.0"', '"truncation": {"max_length": 8}', "truncation" },
  { '"version": "1.0"', '"padding": {"pad_id": 0}', "padding" },
  { '"type": "ByteLevel", "add', '"type": "Metaspace", "add', "Metaspace" },
  { '"decoder": {"type": "ByteLevel"}', '"decoder": {"type": "WordPiece"}', "WordPiece" },
  { '"post_processor": null', '"post_processor": {"type": "Odd"}', "Odd" },
  { '{"type": "ByteLevel", "add_prefix_space": false}', "null", "ByteLevel" },
  { '{"type": "ByteLevel", "add_prefix_space": false}',
    '{"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}, {"type": "Digits"}]}',
    "ByteLevel" },
}
-- Patterns that mean different things in the two libraries.
local PATTERNS = [==[\\h+ a{2}+ (?<n>a) [a[^b]] [a-[b]] [[b]-c] [a[:alpha:]] [a&&b] \\X \\b a{2}?
  (?i)a \\p{ \\1 (*FAIL)]==]
for pattern in PATTERNS:gmatch "%S+" do
  UNSUPPORTED[#UNSUPPORTED + 1] = { '{"type": "ByteLevel", "add_prefix_space": false}',
    '{"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": "' .. pattern
    .. '"}, "behavior": "Isolated"}, {"type": "ByteLevel"}]}', "pattern" }
end

local DAMAGED = {
  { '"ab": 2', '"ab": 4000000000', "4000000000" },
  { '"ab": 2', '"ab": 99999999999999999999', "64 bits" },
  { '"ab": 2', '"ab": 1', "id 1" },
  { '"ab": 2', '"ab": -2', "byte" },
  { '"a b"', '"ab"', "merge" },
  { '"a b"', '"a c"', "'c'" },
  { '"a b"', '"b a"', "'ba'" },
  { '"a b"', '["a"]', "byte" },
  { '"id": 3', '"id": 2', "id 2" },
  { '"id": 3, ', '', "added token" },
  { '"content": "<e>"', '"content": "ab"', "'ab'" },
  { '{"a": 0, "b": 1, "ab": 2}', "{}", "empty" },
  { '["a b"]', ("["):rep(200), "byte" },
  { '"post_processor": null', '"x": ' .. ("["):rep(300) .. ("]"):rep(300), "deeper" },
  { '"post_processor": null', '"post_processor": {"type": "TemplateProcessing", "single": '
    .. '[{"SpecialToken": {"id": "x"}}], "special_tokens": {}}', "'x'" },
}

describe("a tokenizer.json", function()
  local function opened(change)
    local path = write(put(SMALL, change[1], change[2]))
    local tok, message, code = gp.tokenizer(path)
    assert.is_nil(tok, "it was loaded: " .. change[2])
    assert.is_truthy(message:find(path, 1, true), message)
    assert.is_truthy(message:find(change[3], 1, true), message)
    return code
  end

  it("is loaded as it stands", function()
    local tok = assert(gp.tokenizer(write(SMALL)))
    assert.same({ 2, 3, 0 }, tok:encode("ab<e>a"):totable())
    local good, message = pcall(tok.encode, tok, "abc")
    assert.is_false(good)
    assert.is_truthy(message:find("0x63", 1, true)) -- no token stands for this byte
  end)

  for _, change in ipairs(UNSUPPORTED) do
    it("is refused where gpipe does not support it: " .. change[2]:sub(1, 150), function()
      assert.equal("unsupported", opened(change))
    end)
  end

  for _, change in ipairs(DAMAGED) do
    it("is refused as damaged: " .. change[2]:sub(1, 60), function()
      assert.equal("format", opened(change))
    end)
  end

  it("may have null or empty fields, and fields in any order", function()
    for _, change in ipairs {
      { '"normalizer": null', '"normalizer": {"normalizers": [], "type": "Sequence"}' },
      { '"dropout": null', '"dropout": 0.0, "unk_token": "a", "fuse_unk": true' },
      { '"post_processor": null', '"post_processor": {"processors": [], "type": "Sequence"}' },
      { '["a b"]', '[["a", "b"]]' },
      { '"version": "1.0", ', "" },
      { '"version": "1.0"', '"truncation": null, "padding": null' },
    } do
      assert(gp.tokenizer(write(put(SMALL, change[1], change[2]))))
    end
  end)
end)
