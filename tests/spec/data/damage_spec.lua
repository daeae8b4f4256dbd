-- tests/spec/data/damage_spec.lua - a damaged or hostile text file gives an error that names the
-- file and says why, or data that can be used; never a crash, a hang or much memory.
--
-- The specs try every truncation and every flipped bit of small samples of each format. Whether one
-- is an error depends on the place (a letter within a text is as good as another), so `whole` marks
-- the formats whose every truncation must be an error.
-- is said by `whole`: a format whose every truncation shows.
local gp = require "gpipe"
local child = dofile "tests/child.lua"

local tok = assert(gp.tokenizer "examples/data/tokenizer")
local path

local function rewrite(text)
  local file <close> = assert(io.open(path, "wb"))
  file:write(text)
end

-- Walks over what was opened; an error on the way counts as a refusal.
local function use(d)
  for i = 1, math.min(#d, 4) do d:item(i) end
end

local FORMATS = {
  { name = "tokenizer.json", whole = true, open = gp.tokenizer,
    sample = [[{"version": "1.0", "added_tokens": [{"id": 4, "content": "<e>", "special": true,
"lstrip": true}], "normalizer": null, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type":
"Split", "pattern": {"Regex": "(?i:a+)|[^\\s\\p{L}]{1,3}"}, "behavior": "Isolated", "invert": false},
{"type": "ByteLevel", "add_prefix_space": false}]}, "post_processor": {"type": "TemplateProcessing",
"single": [{"SpecialToken": {"id": "b"}}, {"Sequence": {"id": "A"}}], "special_tokens":
{"b": {"id": "b", "ids": [1]}}}, "decoder": {"type": "ByteLevel"}, "model": {"type": "BPE", "vocab":
{"a": 0, "b": 1, "ab": 2, "\u0120": 3}, "merges": ["a b"], "ignore_merges": true}}]],
    use = function(t)
      local ids = t:encode "abba <e>ab a"
      assert(#t:decode(ids) >= 0)
    end },
  { name = "JSONL", open = function(p) return gp.data.jsonl { path = p, fields = { "x", "t" } } end,
    sample = '{"x": [1, 2.5e3], "t": "a\\u00e9\\n", "n": {"a": [true, null]}}\n{"t": "b", "x": [-1, 0]}\n',
    use = use },
  { name = "SQuAD", whole = true,
    open = function(p)
      return gp.data.squad { path = p, tokenizer = tok, context = 4,
        text = function(e) return e.context, e.answers[1] and e.answers[1].text end }
    end,
    sample = [[{"version": "1.1", "data": [{"title": "T", "paragraphs": [{"context": "Lua is sm\u00e4ll.",
"qas": [{"id": "1", "question": "Is it?", "is_impossible": false, "answers": [{"text": "Lua",
"answer_start": 0}]}]}]}]}]], use = use },
  { name = "SQuAD's contexts", whole = true,
    open = function(p) return gp.data.squad { path = p, tokenizer = tok, context = 1 } end,
    sample = '{"data": [{"paragraphs": [{"context": "Lua is small and fast.", "qas": []}]}]}',
    use = use },
  { name = "tokens", open = function(p) return gp.data.tokens { path = p, context = 2 } end,
    sample = ("<I2I2I2I2I2"):pack(1, 2, 50000, 3, 4), use = use },
  { name = "text", open = function(p)
    return gp.data.text { path = p, tokenizer = tok, context = 1, separator = false }
  end, sample = "A text, naïve.\nNot long: 12 €.\n", use = use },
  { name = "bytes", open = function(p) return gp.data.bytes { path = p, context = 2 } end,
    sample = "abc\0\xff", use = use },
}

-- Says whether the file is an error; its text has the path, or comes from walking over the data.
local function is_refused(format)
  local opened, message, code = format.open(path)
  if not opened then
    assert.is_truthy(message:find(path, 1, true), message)
    assert.is_truthy(code == "format" or code == "unsupported", code)
    return true
  end
  return not pcall(format.use, opened)
end

describe("a damaged file", function()
  setup(function() path = os.tmpname() end)
  teardown(function() os.remove(path) end)

  for _, format in ipairs(FORMATS) do
    local sample = format.sample

    it("does not crash, whichever bit is wrong: " .. format.name, function()
      rewrite(sample)
      format.use(assert(format.open(path)))
      local refusals = 0
      for at = 1, #sample do
        for bit = 0, 7 do
          local flipped = string.char(sample:byte(at) ~ (1 << bit))
          rewrite(sample:sub(1, at - 1) .. flipped .. sample:sub(at + 1))
          refusals = refusals + (is_refused(format) and 1 or 0)
        end
      end
      assert.is_true(refusals > 0 or format.name == "bytes" or format.name == "tokens")
    end)

    it("is refused where it ends too early: " .. format.name, function()
      for length = 0, #sample - 1 do
        rewrite(sample:sub(1, length))
        local refused = is_refused(format)
        assert.is_true(refused or not format.whole, ("of %d bytes"):format(length))
      end
      rewrite ""
      assert.is_true(is_refused(format))
    end)

    it("is recognised where it is another format: " .. format.name, function()
      for _, other in ipairs {
        { "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n", "Git LFS" },
        { "<!DOCTYPE html>\n<html><body>404</body></html>\n", "HTML" },
        { "\x80\4\x95\x0b\0\0\0\0\0\0\0}\x94\x8c\1a\x94K\1s.", "pickle" },
        { "PK\3\4\20\0\8\8\0\0data", "zip" },
        { "\x93NUMPY\1\0v\0{'descr': '<f4'}", "npy" },
      } do
        rewrite(other[1])
        local opened, message = format.open(path)
        if format.name ~= "bytes" then
          assert.is_nil(opened)
          assert.is_truthy(message:find(other[2], 1, true), message)
        end
      end
    end)
  end
end)

-- ---- memory ------------------------------------------------------------------------------------

-- Prints how many more bytes a child process needs at its peak because of the file.
local PEAK = [[
  local gp = require "gpipe"
  local tok = assert(gp.tokenizer "examples/data/tokenizer")
  local function peak()
    local file <close> = io.open "/proc/self/status"
    return tonumber(file:read("a"):match "VmHWM:%%s*(%%d+)") * 1024
  end
  tok:encode "warm"
  local before = peak()
  local good, message = (function() %s end)()
  if not good then io.stderr:write(tostring(message)) end
  print(peak() - before)
]]

local function peak_of(text, code)
  local file = os.tmpname()
  finally(function() os.remove(file) end)
  path = file
  rewrite(text)
  local out, err = child.run { "-e", PEAK:format(code:gsub("PATH", ("%q"):format(file))) }
  return assert(tonumber(out), err), err
end

local MB = 1024 * 1024
local line = '{"text": "some words of a line, and a few more", "n": [1, 2, 3]}\n'
local paragraph = '{"context": "A sentence about pipelines that is not short. ' .. ("Words follow. "):rep(20)
  .. '", "qas": [{"id": "1", "question": "What is it?", "answers": [{"text": "A", "answer_start": 0}]}]}'

local LARGE = {
  { "text", ("The pipeline has four stages, and each of them has a device.\n"):rep(150000),
    [[return gp.data.text {path = PATH, tokenizer = tok, context = 64}]] },
  { "tokens", ("\1\0"):rep(5000000), [[
    local d = gp.data.tokens {path = PATH, context = 64}
    for i = 1, #d do -- items are garbage at once, and must not count
      d:item(i)
      if i % 1000 == 0 then collectgarbage() end
    end
    return d]] },
  { "CSV", ("1,2,3,4,5,6,7,8,9\n"):rep(550000), [[return gp.data.csv {path = PATH}]] },
  { "words of CSV", ("1,2,3,4,5,6,7,8,pear\n"):rep(500000), [[return gp.data.csv {path = PATH}]] },
  { "bytes", ("a"):rep(10000000), [[return gp.data.bytes {path = PATH, context = 64}]] },
  { "JSONL", line:rep(150000), [[return gp.data.jsonl {path = PATH, fields = {"text", "n"}}]] },
  { "SQuAD", '{"data": [{"title": "T", "paragraphs": [' .. (paragraph .. ","):rep(22000) .. paragraph
    .. "]}]}", [[return gp.data.squad {path = PATH, tokenizer = tok, context = 64}]] },
  -- hostile ones
  { "a list without end", '{"n": [' .. ("1,"):rep(5000000), [[
    local d, message = gp.data.jsonl {path = PATH, fields = {"n"}}
    assert(not d)
    return true]] },
  { "brackets", ("["):rep(10000000), [[
    assert(not gp.tokenizer(PATH) and not gp.data.squad {path = PATH, tokenizer = tok, context = 1})
    return true]] },
  { "questions of nothing", '{"data": [{"paragraphs": [{"context": "a", "qas": ['
    .. ('{"question": ""},'):rep(400000) .. '{"question": ""}]}]}]}',
    [[return gp.data.squad {path = PATH, tokenizer = tok, context = 1, text = print}]] },
}

-- The address sanitizer keeps freed memory, and a shadow of all memory.
local with_peak = (os.getenv "GPIPE_SANITIZE" or "") == "" and it or pending

describe("the memory for a file", function()
  for _, case in ipairs(LARGE) do
    with_peak("is at most twice the file: " .. case[1], function()
      local bytes, err = peak_of(case[2], case[3])
      assert.equal("", err)
      assert.is_true(bytes <= 2 * #case[2] + 5 * MB, -- the program itself takes some
        ("%d bytes for a file of %d"):format(bytes, #case[2]))
    end)
  end
end)
