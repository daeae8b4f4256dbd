-- tests/spec/data/wrong_calls_spec.lua - calls the public functions of data and files with
-- generated arguments: they work, or say what is wrong in a short text of ours.
local gp = require "gpipe"

local CALLS, LONGEST = 12000, 1200 -- a text may hold a thousand characters of a path

local folder, tok, d

setup(function()
  folder = os.tmpname()
  os.remove(folder)
  assert(os.execute(("mkdir -p %s/dir/sub; mkfifo %s/pipe; ln -s loop %s/loop; mkfifo "
    .. "%s/dir/train-images-idx3-ubyte"):format(folder, folder, folder, folder)))
  for name, text in pairs { ["t.csv"] = "a,y\n1,2\n", text = "hello\n", empty = "",
    ["j.jsonl"] = '{"x": 1}\n', ["n.npy"] = "\x93NUMPY\1\0\4\0{}  ", ["s.json"] = '{"data": []}',
    noise = ("\x93\0\xff{"):rep(700) } do
    local file <close> = assert(io.open(folder .. "/" .. name, "wb"))
    file:write(text)
  end
  tok = assert(gp.tokenizer "examples/data/tokenizer")
  d = gp.data.tensors(gp.arange(1, 6), gp.ones { 6 })
end)
teardown(function() os.execute("rm -r " .. folder) end)

local NAMES = { "path", "dir", "files", "match", "context", "stride", "target", "columns", "words",
  "missing", "header", "separator", "split", "normalise", "augment", "size", "train", "tokenizer",
  "field", "fields", "special", "text", "dtype", "count", "buffer", "batch", "seed", "epochs",
  "shuffle", "drop_last", "workers", "prefetch", "pad", "sort_by", "weights", "replacement", "from" }
local FILES = { "t.csv", "text", "empty", "j.jsonl", "n.npy", "s.json", "noise", "dir", "pipe",
  "loop", "none" }

local function values()
  local list = table.pack(nil, true, false, 0, 1, -1, 2, 1.5, 0 / 0, math.huge, -math.huge, 2 ^ 31,
    1 << 31, 1 << 40, math.maxinteger, math.mininteger, "", "x", ("x"):rep(100000), "a\0b", "\xff",
    "%", "/nowhere/x", "/dev/null", {}, { 1 }, { 1, 2, 3 }, { "x" }, { {} }, { x = 1 }, { d },
    { d, d }, type, function() return 1 end, function() return function() end end, io.stdout,
    coroutine.create(type), gp.ones { 2 }, gp.ones {}, gp.zeros { 0 }, d, tok,
    gp.tensor({ 1, 2 }, { dtype = "i64" }), gp.nn.Linear(1, 1), setmetatable({}, { __index = error }))
  for _, name in ipairs(FILES) do
    list.n = list.n + 1
    list[list.n] = folder .. "/" .. name
  end
  return list
end

local function functions()
  local list = { { "gp.load", gp.load }, { "gp.tokenizer", gp.tokenizer } }
  for _, name in ipairs { "bytes", "cifar10", "cifar100", "concat", "csv", "epochs", "from", "images",
    "jsonl", "mnist", "squad", "stream", "subset", "tensors", "text", "tokens" } do
    list[#list + 1] = { "gp.data." .. name, gp.data[name] }
  end
  local function methods(prefix, make, names)
    for name in names:gmatch "%S+" do
      list[#list + 1] = { prefix .. name, function(...)
        local object = make()
        return object[name](object, ...)
      end }
    end
  end
  methods("d:", function() return d end, "item split shard shuffle map filter collate sample batches")
  methods("it:", function() return (d:batches(2)) end, "state restore close")
  methods("e:", function() return gp.data.epochs(d, { batch = 2 }) end, "state restore steps next")
  methods("s:", function() return gp.data.stream(function() return function() end end) end,
    "map filter shard shuffle batches")
  list[#list + 1] = { "gp.save", function(path, ...) -- writes only within the folder
    if type(path) == "string" and path:sub(1, #folder) ~= folder then path = folder .. "/" .. path end
    return gp.save(path, ...)
  end }
  return list
end

-- Walks over the result, which may be a dataset or batches.
local function use(value)
  local kind = type(value) == "table" and getmetatable(value)
  kind = type(kind) == "table" and kind.__name
  if kind == "gpipe.Dataset" then
    assert(tostring(value))
    value:item(1)
    local batches = value:shuffle(1):batches(2, { workers = 2 })
    batches()
    batches:close()
  elseif kind == "gpipe.Batches" or kind == "gpipe.Epochs" then
    assert(tostring(value))
    value()
    value:close()
  end
end

describe("data and files", function()
  it("work, or answer any arguments with a short text of their own", function()
    local given, called = values(), functions()
    math.randomseed(23)
    local function pick() return given[math.random(given.n)] end
    local function options()
      local o = { path = folder .. "/" .. FILES[math.random(#FILES)], context = math.random(4),
        tokenizer = tok, fields = { "x" }, batch = 2 }
      for name in pairs { path = 1, context = 1, tokenizer = 1, fields = 1, batch = 1 } do
        if math.random(2) == 1 then o[name] = nil end
      end
      for _ = 1, math.random(0, 3) do o[NAMES[math.random(#NAMES)]] = pick() end
      return o
    end
    local function argument() return math.random(2) == 1 and options() or pick() end
    for i = 1, CALLS do
      local name, f = table.unpack(called[math.random(#called)])
      local good, first, message = pcall(f, argument(), argument(), argument())
      local used, why_not = pcall(use, good and first)
      local text = first
      if good and not used then text = why_not end
      if good and used then text = first == nil and message or nil end
      if text ~= nil then
        local why = ("call %d, %s: %s"):format(i, name, tostring(text):sub(1, 300))
        assert(type(text) == "string" and #text <= LONGEST, why)
        for _, raw in ipairs { "attempt to", "bad argument", "stack overflow", "lua/gpipe/" } do
          assert(not text:find(raw, 1, true), why)
        end
      end
    end
  end)
end)
