-- tests/spec/data/corpus_spec.lua - tokens, text, SQuAD and JSONL as datasets.
local gp = require "gpipe"

local tok = assert(gp.tokenizer "examples/data/tokenizer")
local END = tok.special["<|endoftext|>"]

local function write(text)
  local path = os.tmpname()
  finally(function() os.remove(path) end)
  local file <close> = assert(io.open(path, "wb"))
  file:write(text)
  return path
end

-- Returns all ids that a walk over windows without overlap visits, and the last target.
local function ids_of(d)
  local ids, last = {}, nil
  for i = 1, #d do
    local x, y = d:item(i)
    for _, id in ipairs(x:totable()) do ids[#ids + 1] = id end
    last = y[-1]
  end
  ids[#ids + 1] = last
  return ids
end

local function refused(code, part, open, opts)
  local d, message, got = open(opts)
  assert.is_nil(d)
  assert.equal(code, got, message)
  assert.is_truthy(message:find(part, 1, true), message)
end

describe("gp.data.tokens", function()
  local ids = { 5, 60000, 0, 65535, 256, 7, 8 }

  it("reads ids of two and of four bytes", function()
    for dtype, form in pairs { u16 = "<I2", u32 = "<I4" } do
      local parts = {}
      for i, id in ipairs(ids) do parts[i] = form:pack(id) end
      local d = assert(gp.data.tokens { path = write(table.concat(parts)), context = 2,
        dtype = dtype })
      assert.equal(3, #d)
      assert.same(ids, ids_of(d))
      local x, y = d:item(2)
      assert.same({ 0, 65535 }, x:totable())
      assert.same({ 65535, 256 }, y:totable())
    end
    local large = write(("<I4I4"):pack(70000, 4000000000))
    local x, y = assert(gp.data.tokens { path = large, context = 1, dtype = "u32" }):item(1)
    assert.same({ 70000, 4000000000 }, { x[1], y[1] })
  end)

  it("shuffles, splits and strides", function()
    local parts = {}
    for i = 0, 99 do parts[#parts + 1] = ("<I2"):pack(i * 600) end
    local d = assert(gp.data.tokens { path = write(table.concat(parts)), context = 4, stride = 1 })
    assert.equal(96, #d)
    local a, b = d:shuffle(3):split(0.5)
    local sum = 0
    for _, part in ipairs { a, b } do
      for x, y in part:batches(7) do
        assert.equal(x[1][2], y[1][1])
        sum = sum + x:narrow(2, 1, 1):sum():item() // 600
      end
    end
    assert.equal(95 * 96 // 2, sum)
  end)

  it("puts files together in the order of their names", function()
    local one, two = write(("<I2I2I2"):pack(1, 2, 3)), write(("<I2I2"):pack(4, 5))
    local d = assert(gp.data.tokens { files = { one, two }, context = 2 })
    assert.same({ 1, 2, 3, 4, 5 }, ids_of(d))
  end)

  it("maps a file without allocating, and raises when it is cut short", function()
    local path = write(("\1\2"):rep(4000000))
    local before = gp.memory().cpu.live
    local d = assert(gp.data.tokens { path = path, context = 100 })
    local x = d:item(30000)
    assert.equal(513, x[1])
    assert.is_true(gp.memory().cpu.live - before < 100000)
    local file <close> = assert(io.open(path, "wb"))
    file:write "\1\2\3\4"
    file:flush()
    local good, message = pcall(d.item, d, 30000)
    assert.is_false(good)
    assert.is_truthy(message:find(path, 1, true))
  end)

  it("refuses files that hold no ids", function()
    local function opts(text) return { path = write(text), context = 2 } end
    refused("format", "byte 6", gp.data.tokens, opts "\1\0\2\0\3\0\4")
    refused("format", "expected at least", gp.data.tokens, opts "\1\0\2\0")
    refused("format", "expected at least", gp.data.tokens, opts "")
    refused("format", "Git LFS", gp.data.tokens,
      opts "version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    refused("format", "HTML", gp.data.tokens, opts "<!DOCTYPE html><html></html>")
    refused("format", "pickle", gp.data.tokens, opts "\x80\4\x95\1\0\0\0\0\0\0\0]q\0.")
    refused("format", "npy", gp.data.tokens, opts "\x93NUMPY\1\0aaaaaaaa")
    refused("io", "no/such", gp.data.tokens, { path = "no/such", context = 2 })
    assert(gp.data.tokens(opts "\x80\2\1\1\1\1\1\1")) -- 640 is an id like any other
    assert.is_false(pcall(gp.data.tokens, { path = "x", context = 2, dtype = "i64" }))
  end)
end)

describe("gp.data.text", function()
  it("holds the ids of its files, with a separator after each", function()
    local one, two = "The first text, naïve.", "A second one.\n"
    local d = assert(gp.data.text { files = { write(one), write(two) }, tokenizer = tok,
      context = 1 })
    local wanted = tok:encode(one):totable()
    wanted[#wanted + 1] = END
    for _, id in ipairs(tok:encode(two):totable()) do wanted[#wanted + 1] = id end
    wanted[#wanted + 1] = END
    local got = ids_of(d)
    -- names by os.tmpname have no order
    assert.is_true(tok:decode(got) == tok:decode(wanted)
      or tok:decode(got) == two .. "<|endoftext|>" .. one .. "<|endoftext|>")
    local without = assert(gp.data.text { path = write(one), tokenizer = tok, context = 1,
      separator = false })
    assert.equal(one, tok:decode(ids_of(without)))
  end)

  it("takes special tokens as tokens, or as text", function()
    local path = write "one<|endoftext|>two"
    for special, count in pairs { [true] = 1, [false] = 0 } do
      local ids = ids_of(assert(gp.data.text { path = path, tokenizer = tok, context = 1,
        separator = false, special = special }))
      local found = 0
      for _, id in ipairs(ids) do found = found + (id == END and 1 or 0) end
      assert.equal(count, found)
      assert.equal("one<|endoftext|>two", tok:decode(ids))
    end
  end)

  it("takes the texts of a field of JSONL", function()
    local path = write '{"text": "one \\u00e9", "n": 1}\n\n{"n": 2, "text": "two"}\n'
    local d = assert(gp.data.text { path = path, tokenizer = tok, context = 1, field = "text" })
    assert.equal("one é<|endoftext|>two<|endoftext|>", tok:decode(ids_of(d)))
    refused("format", "no texts", gp.data.text,
      { path = path, tokenizer = tok, context = 1, field = "n" })
  end)

  it("refuses files that are not text", function()
    local function opts(text) return { path = write(text), tokenizer = tok, context = 2 } end
    refused("format", "byte 3", gp.data.text, opts "abc\xffdef")
    refused("format", "byte 4", gp.data.text, opts "abcd\xe2\x82")
    refused("format", "Git LFS", gp.data.text, opts "version https://git-lfs.github.com/spec/v1\n")
    refused("format", "HTML", gp.data.text, opts "<!doctype html><p>404")
    refused("format", "pickle", gp.data.text, opts "\x80\4\x95abc.")
    refused("format", "expected at least", gp.data.text, opts "")
    assert.is_false(pcall(gp.data.text, { path = "x", context = 2 }))
    assert.is_false(pcall(gp.data.text, { path = "x", tokenizer = {}, context = 2 }))
    assert.is_false(pcall(gp.data.text, { path = "x", tokenizer = tok, context = 2,
      separator = "no token" }))
  end)
end)

local SQUAD = [[{"version": "v2.0", "data": [
  {"paragraphs": [{"context": "Lua comes from Rio. It is small.", "qas": [
      {"id": "a", "question": "Where from?", "answers": [{"text": "Rio", "answer_start": 15},
        {"answer_start": 10, "text": "from Rio"}], "is_impossible": false},
      {"question": "Who?", "plausible_answers": [{"text": "It", "answer_start": 20}],
        "is_impossible": true, "answers": [], "id": "b"}]},
    {"qas": [], "context": "Caf\u00e9 \"Lua\"."}], "title": "Lua"},
  {"title": "Empty", "paragraphs": []}]}]]

describe("gp.data.squad", function()
  it("holds the contexts, each once, with a separator after it", function()
    local d = assert(gp.data.squad { path = write(SQUAD), tokenizer = tok, context = 1 })
    assert.equal('Lua comes from Rio. It is small.<|endoftext|>Café "Lua".<|endoftext|>',
      tok:decode(ids_of(d)))
  end)

  it("gives its questions to a function", function()
    local seen = {}
    local d = assert(gp.data.squad { path = write(SQUAD), tokenizer = tok, context = 24,
      text = function(e)
        seen[#seen + 1] = e
        return e.question, e.answers[1] and " " .. e.answers[1].text or ""
      end })
    assert.equal(2, #d)
    local x, y = d:item(1)
    d:item(2)
    assert.same({ "Lua", "a", "Where from?", false, "Lua comes from Rio. It is small." },
      { seen[1].title, seen[1].id, seen[1].question, seen[1].impossible, seen[1].context })
    assert.same({ { text = "Rio", start = 16 }, { text = "from Rio", start = 11 } },
      seen[1].answers)
    assert.equal("from Rio", seen[1].context:sub(11, 18))
    assert.same({ {}, true }, { seen[2].answers, seen[2].impossible })
    -- only the answer and the end are targets
    local prompt, answer = tok:encode "Where from?", tok:encode " Rio"
    local p, a = prompt:numel(), answer:numel()
    local ids, targets = x:totable(), y:totable()
    assert.equal("Where from? Rio<|endoftext|>", tok:decode { table.unpack(ids, 1, p + a + 1) })
    for k = 1, 24 do
      local wanted = -100
      if k >= p and k < p + a then wanted = answer[k - p + 1] end
      if k == p + a then wanted = END end
      assert.equal(wanted, targets[k])
    end
  end)

  it("cuts prompts that are too long at their beginning", function()
    local d = assert(gp.data.squad { path = write(SQUAD), tokenizer = tok, context = 4,
      separator = false, text = function() return ("the "):rep(30), " of" end })
    local _, y = d:item(1)
    assert.equal(tok:id " of", y[4])
    assert.equal(-100, y[3])
    local whole = assert(gp.data.squad { path = write(SQUAD), tokenizer = tok, context = 4,
      text = function() return ("the "):rep(30) end })
    local ids, targets = whole:item(1)
    assert.equal("the the the", tok:decode(ids):sub(1, 11))
    assert.equal(ids[2], targets[1])
  end)

  it("refuses files that are not SQuAD", function()
    local function opts(text, more)
      return { path = write(text), tokenizer = tok, context = 2, text = more }
    end
    refused("format", '"data"', gp.data.squad, opts "{}")
    refused("format", "byte", gp.data.squad, opts "[]")
    refused("format", "context", gp.data.squad, opts '{"data": [{"paragraphs": [{"qas": []}]}]}')
    refused("format", "byte 24", gp.data.squad, opts '{"data": [{"paragraphs":null}]}')
    refused("format", "beyond", gp.data.squad, opts((SQUAD:gsub(": 15", ": 99"))))
    refused("format", "HTML", gp.data.squad, opts "<html></html>")
    refused("format", "no questions", gp.data.squad, opts('{"data": []}', print))
    local odd = assert(gp.data.squad(opts(SQUAD, function() return nil end)))
    assert.is_false(pcall(odd.item, odd, 1))
  end)
end)

describe("gp.data.jsonl", function()
  local function open(text, ...) return gp.data.jsonl { path = write(text), fields = { ... } } end

  it("begins after a byte order mark, and pads lists of several lengths", function()
    local d = assert(open('\xef\xbb\xbf{"x": [1, 2], "y": 0}\n{"x": [3], "y": 1}\n', "x", "y"))
    for x in d:batches(2, { pad = -1 }) do assert.same({ { 1, 2 }, { 3, -1 } }, x:totable()) end
    assert.equal(1, #d:filter(function(x) return x:numel() == 1 end))
  end)

  it("gives each kind of value the dtype that holds it", function()
    local d = assert(open('{"i": 9007199254740993, "f": 1, "b": true, "t": "a\\n", "l": [1, 2]}\n'
      .. ' \r\n{"l": [3, -4], "t": "", "b": false, "f": -2.5e1, "i": -1, "more": {"x": [null]}}', "i", "f"))
    assert.equal(2, #d)
    local x, y = d:batches(2)()
    assert.same({ "i64", "f32" }, { x.dtype, y.dtype })
    assert.same({ { 9007199254740993, -1 }, { 1, -25 } }, { x:totable(), y:totable() })
  end)

  it("gives lists as rows, booleans as bool, texts as strings", function()
    local text = '{"b": true, "t": "a\\n", "l": [1, 2], "m": [1, 2.5]}\n'
      .. '{"l": [3, -4], "t": "", "b": false, "m": []}'
    local x, y = assert(open(text, "l", "t")):batches(2)()
    assert.equal("i64", x.dtype)
    assert.same({ { { 1, 2 }, { 3, -4 } }, { "a\n", "" } }, { x:totable(), y })
    local truths = assert(open(text, "b")):batches(2)()
    assert.same({ "bool", { true, false } }, { truths.dtype, truths:totable() })
    local d = assert(open(text, "m", "t"))
    assert.same({ "f32", 2 }, { d:item(1).dtype, d:item(1):numel() })
    local good, message = pcall(d:batches(2))
    assert.is_false(good)
    assert.is_truthy(message:find("lists of 2 and 0", 1, true))
  end)

  it("says where a line is wrong", function()
    local good = '{"a": 1}\n'
    for bad, part in pairs {
      ['{"a": 1'] = "byte 7", ['{"b": 1}'] = "'a' is missing", ['{"a": null}'] = "null",
      ['{"a": "x"}'] = "'a' is a text", ['{"a": {}}'] = "an object", ['[1]'] = "byte 0",
      ['{"a": 01}'] = "byte 6", ['{"a": 1} x'] = "byte 9", ['{"a": [1, "b"]}'] = "byte 10",
      ['{"a": 1, "b": ' .. ("["):rep(200)] = "deeper", ['{"a": "\\ud800"}'] = "surrogate",
    } do
      local d, message, code = open(good .. good .. bad, "a")
      assert.is_nil(d, bad)
      assert.equal("format", code)
      assert.is_truthy(message:find(":3: byte 18", 1, true), message)
      assert.is_truthy(message:find(part, 1, true), message)
    end
    refused("format", "the number 1e39 is beyond what f32 holds", gp.data.jsonl,
      { path = write '{"a": [1, 1e39]}', fields = { "a" } })
    refused("format", "no rows", gp.data.jsonl, { path = write "\n \n", fields = { "a" } })
    refused("format", "byte 2", gp.data.jsonl, { path = write '{"\xff', fields = { "a" } })
    refused("format", "Git LFS", gp.data.jsonl,
      { path = write "version https://git-lfs", fields = { "a" } })
    for _, fields in ipairs { {}, { "a", "b", "c" }, { 1 } } do
      assert.is_false(pcall(gp.data.jsonl, { path = "x", fields = fields }))
    end
  end)
end)
