-- tests/spec/nn/wrong_calls_spec.lua - every wrong call raises an error, whatever is called.
--
-- The names are those that are bound, so a new layer or function is tested without an edit here:
-- with values that make no sense anywhere, and with each of its options misspelt and of a wrong
-- type. Arguments that are no sizes are tried on every layer. Functions that accept such a value on
-- purpose are listed with the reason, and so are the arguments of functions with options, where 4
-- for each argument does not work.
local gp = require "gpipe"
local class = require "gpipe.nn.class"
local core = require "gpipe.core"
local nn, optim = gp.nn, gp.optim

local x = gp.ones { 2, 2 }

-- Lists every public name: {name as it is written, function or class, arguments before those
-- tried}.
local function callables()
  local list = {}
  local function walk(prefix, names, ...)
    for name, value in pairs(names) do
      local meta = type(value) == "table" and getmetatable(value)
      value = type(meta) == "table" and rawget(meta, "call") or value -- gp.models.gpt2
      if type(value) == "function" or class.info(value) then
        list[#list + 1] = { name = prefix .. name, call = value, before = { ... } }
      end
    end
  end
  for _, place in ipairs { gp, gp.models } do
    for name in pairs(getmetatable(place).parts) do assert(place[name]) end
  end
  walk("gp.", gp)
  walk("nn.", nn)
  walk("nn.init.", nn.init)
  walk("optim.", optim)
  walk("optim.schedule.", optim.schedule)
  walk("gp.data.", gp.data)
  walk("gp.schedule.", gp.schedule)
  walk("gp.sweep.", gp.sweep)
  walk("gp.train.", gp.train)
  walk("gp.linalg.", gp.linalg)
  walk("gp.models.", gp.models)
  walk("gp.models.gpt2.", gp.models.gpt2)
  walk("t:", core.methods, x)
  table.sort(list, function(a, b) return a.name < b.name end)
  return list
end

-- Returns the text of the error, or nil where the call succeeded.
local function failure(each, ...)
  local arguments = table.move(each.before, 1, #each.before, 1, {})
  local count = select("#", ...)
  for i = 1, count do arguments[#each.before + i] = (select(i, ...)) end
  local good, message = pcall(each.call, table.unpack(arguments, 1, #each.before + count))
  return not good and tostring(message) or nil
end

-- Returns the word that an error uses for a function: "Linear" for nn.Linear, "add" for t:add_.
local function word_of(each)
  local word = each.name:match "[%w_]+$":gsub("_$", "")
  return word == "cat" and "concat" or word
end

local VALUES = {
  { "a coroutine", coroutine.create(print) },
  { "a table of unknown fields", { nonsense_option = 1 } },
}

-- They ask what a value is, or return it, so any value will do.
local TAKES_ANY = {
  ["nn.is_module"] = true, ["nn.init.is"] = true, ["gp.schedule.is"] = true,
  ["gp.schedule.is_own"] = true, ["gp.schedule.takes"] = true,
  ["gp.all_gather"] = true, -- tables of plain values are gathered as they are
  -- Not for scripts: gp.schedule.build and gp.pipeline check what is built.
  ["gp.schedule.resolve"] = true, ["gp.schedule.wrap"] = true,
}

-- A function that takes no argument (a method, none but its object) ignores them, as Lua's own do.
local function takes_nothing(each)
  local f = each.call
  if type(f) ~= "function" then return false end
  local info = debug.getinfo(f, "uS")
  return info.what ~= "C" and info.nparams <= #each.before and not info.isvararg
end

-- Methods in C without arguments.
local NO_ARGUMENTS = {}
for name in ([[backward bytes clone contiguous detach dim free is_buffer is_contiguous is_frozen
  is_parameter item numel t totable value zero_]]):gmatch "%S+" do
  NO_ARGUMENTS["t:" .. name] = true
end

-- Methods that are ops whose only operand is the tensor, and that have no attributes; they refuse a
-- table.
local elementwise = {}
for _, row in ipairs(core.contracts()) do
  if #row.operands == 1 and #row.attributes == 0 then
    elementwise["t:" .. row.name], elementwise["t:" .. row.name .. "_"] = true, true
  end
end

describe("a value that makes no sense", function()
  for _, each in ipairs(callables()) do
    local skipped = TAKES_ANY[each.name] or takes_nothing(each) or NO_ARGUMENTS[each.name]
    for i, value in ipairs(VALUES) do
      if not skipped and not (i == 1 and elementwise[each.name]) then
        it(("is refused by %s: %s"):format(each.name, value[1]), function()
          local message = assert(failure(each, value[2]), "the call succeeded")
          assert.is_nil(message:find("attempt to", 1, true), message)
          assert.is_truthy(message:find(word_of(each), 1, true), message)
          assert.is_truthy(message:find "expected" or message:find "option"
            or message:find "there is no", message)
        end)
      end
    end
  end
end)

-- ---- positions ---------------------------------------------------------------------------------

-- Values that no layer takes in any place. Sizes are tried by the names of the arguments.
local NOWHERE = { coroutine.create(print), 0 / 0, false }
local NO_SIZES = { -7, 2.5, "4", {} }
local SIZES = {}
for name in ([[in_features out_features in_channels out_channels n dim heads input_size hidden_size
  groups ff]]):gmatch "%S+" do
  SIZES[name] = true
end

-- Layers whose `dim` is a position among dimensions.
local OF_A_DIMENSION = {}
for name in ([[Softmax LogSoftmax Softmin GLU CosineSimilarity Unflatten Concat]]):gmatch "%a+" do
  OF_A_DIMENSION["nn." .. name] = true
end

describe("an argument", function()
  local function refused(each, count, at, name, wrong)
    it(("is refused by %s: %s is %s"):format(each.name, name, tostring(wrong):gsub(": .*", "")),
      function()
        local arguments = {}
        for k = 1, count do arguments[k] = 4 end
        arguments[at] = wrong
        local good, message = pcall(each.call, table.unpack(arguments, 1, count))
        assert.is_false(good)
        assert.is_truthy(message:find(each.name, 1, true), message)
        assert.is_truthy(message:find("expected", 1, true) or message:find("nan", 1, true), message)
      end)
  end
  for _, each in ipairs(callables()) do
    local init = class.info(each.call) and rawget(each.call, "init")
    local count = init and debug.getinfo(init, "u").nparams - 1 or 0
    if init and debug.getlocal(init, count + 1) == "opts" then count = count - 1 end
    for at = 1, count do
      local name = debug.getlocal(init, at + 1)
      for _, wrong in ipairs(NOWHERE) do refused(each, count, at, name, wrong) end
      local sizes = SIZES[name] and not (name == "dim" and OF_A_DIMENSION[each.name])
      for _, wrong in ipairs(sizes and NO_SIZES or {}) do refused(each, count, at, name, wrong) end
    end
  end
end)

-- ---- options -----------------------------------------------------------------------------------

local model = nn.Sequential { nn.Linear(2, 2) }
local function square(a) return a * a end

-- Arguments before the options.
local BEFORE = {
  ["gp.tokenizer"] = { "examples/data/tokenizer" },
  ["optim.SGD"] = { model:parameters() }, ["optim.Adam"] = { model:parameters() },
  ["optim.AdamW"] = { model:parameters() }, ["optim.RMSprop"] = { model:parameters() },
  ["optim.Adamax"] = { model:parameters() }, ["optim.Adadelta"] = { model:parameters() },
  ["optim.NAdam"] = { model:parameters() }, ["optim.LBFGS"] = { model:parameters() },
  ["optim.Adagrad"] = { model:parameters() }, ["optim.Lion"] = { model:parameters() },
  ["optim.clip_grad_norm"] = { model:parameters(), 1 },
  ["gp.pipeline"] = { model }, ["gp.dry_run"] = { model }, ["gp.gradcheck"] = { square, { x } },
  ["gp.profile"] = { model, x }, ["gp.balance_by_time"] = { 1, model, x },
  ["gp.balance_by_size"] = { 1, model, x },
  ["gp.compile"] = { square, { x } }, ["gp.tensor"] = { { 1 } }, ["gp.stack"] = { { x } },
  ["gp.zeros"] = { { 2 } }, ["gp.ones"] = { { 2 } }, ["gp.rand"] = { { 2 } },
  ["gp.randn"] = { { 2 } }, ["gp.full"] = { { 2 }, 1 }, ["gp.arange"] = { 1, 3, 1 },
  ["gp.randint"] = { 1, 4, { 2 } }, ["gp.randint_like"] = { x, 1, 4 },
  ["t:addmm"] = { x, x }, ["t:baddbmm"] = { gp.ones { 1, 2, 2 }, gp.ones { 1, 2, 2 } },
  ["t:addbmm"] = { gp.ones { 1, 2, 2 }, gp.ones { 1, 2, 2 } }, ["t:addmv"] = { x, gp.ones { 2 } },
  ["t:addr"] = { gp.ones { 2 }, gp.ones { 2 } }, ["t:bucketize"] = { gp.ones { 2 } },
  ["t:new_zeros"] = { { 2 } }, ["t:new_ones"] = { { 2 } }, ["t:new_full"] = { { 2 }, 1 },
  ["t:new_tensor"] = { { 2 } }, ["t:var_mean"] = { 1 }, ["t:std_mean"] = { 1 },
  ["optim.Muon"] = { model[1].weight and { model:parameters()[1] } },
  ["gp.schedule.parse"] = { "0F0,0B0" },
  ["nn.Stash"] = { "skip" }, ["nn.Pop"] = { "skip", "add" }, ["t:var"] = { 1 }, ["t:std"] = { 1 },
  ["t:isclose"] = { x }, ["t:addcmul"] = { x, x }, ["t:addcdiv"] = { x, x },
  ["t:normal_"] = { 0, 1 }, ["t:uniform_"] = { 0, 1 }, ["t:bernoulli_"] = { 0.5 },
  ["t:exponential_"] = { 1 }, ["t:quantile"] = { 0.5, 1 }, ["t:multinomial"] = { 1 },
  ["gp.zeros_like"] = { x }, ["gp.ones_like"] = { x }, ["gp.rand_like"] = { x },
  ["gp.randn_like"] = { x }, ["gp.full_like"] = { x, 1 }, ["gp.normal"] = { 0, 1, { 2 } },
  ["gp.searchsorted"] = { gp.ones { 2 }, x },
  ["t:allclose"] = { x }, ["t:argsort"] = { 1 }, ["t:sort"] = { 1 }, ["t:topk"] = { 1, 1 },
  ["t:bincount"] = {}, ["t:unique"] = {}, ["gp.bernoulli"] = { 0.5, { 2 } }, ["gp.attention"] = {
    gp.ones { 1, 2, 4 }, gp.ones { 1, 2, 4 }, gp.ones { 1, 2, 4 } },
  ["nn.Parameter"] = { { 2 }, 0 }, ["nn.Buffer"] = { { 2 }, 0 }, ["nn.class"] = { "Mine", nn.Module },
  ["gp.models.resnet"] = { 18 }, ["gp.models.vgg"] = { 11 }, ["gp.models.gpt2"] = { "small" },
  ["gp.models.generate"] = { model, gp.ones({ 2 }, { dtype = "i64" }) },
  ["gp.data.tensors"] = { x, x }, ["gp.data.from"] = { { { 1, 2 } } },
  ["gp.data.epochs"] = { gp.data.tensors(x, x) }, ["gp.data.stream"] = { function() end }, ["gp.run"] = { "wrong" },
  ["gp.schedule.build"] = { "1f1b" }, ["gp.train.ema"] = { model },
  ["gp.train.events"] = { "wrong.tfevents" },
}

-- Returns the arguments before a parameter that is called opts; nil where there is none.
local function arguments_of(each)
  local f = class.info(each.call) and each.call.init or each.call
  if type(f) ~= "function" or debug.getinfo(f, "S").what == "C" then return nil end
  local first = class.info(each.call) and 2 or 1
  for i = first, debug.getinfo(f, "u").nparams do
    if debug.getlocal(f, i) == "opts" then
      local given = BEFORE[each.name] or {}
      if not BEFORE[each.name] then
        for k = 1, i - first do given[k] = 4 end
      end
      return given
    end
  end
end

-- Returns the error of a call with these options.
local function failure_with(each, given, options)
  local arguments = table.move(given, 1, #given, 1, {})
  arguments[#arguments + 1] = options
  return failure(each, table.unpack(arguments))
end

-- Returns the names of all options, from the text about an unknown one.
local function options_of(each, given)
  local message = failure_with(each, given, { zzqx = 1 }) or "no error"
  if not message:find("'zzqx'", 1, true) then return nil, message end
  local names = {}
  for name in (message:match "%a+ are ([%w_, ]+)%)" or ""):gmatch "[%w_]+" do
    names[#names + 1] = name
  end
  return names
end

-- "momentum" -> "momnetum".
local function misspell(word)
  local at = #word // 2
  return word:sub(1, at - 1) .. word:sub(at + 1, at + 1) .. word:sub(at, at) .. word:sub(at + 2)
end

describe("an option", function()
  local tried = 0
  for _, each in ipairs(callables()) do
    local given = arguments_of(each)
    local names, why
    if given then names, why = options_of(each, given) end
    if given and not names then
      pending(("of %s: BEFORE lacks its arguments (%s)"):format(each.name, why))
    end
    for _, name in ipairs(names or {}) do
      tried = tried + 1
      local wrong = misspell(name)
      if #name > 3 and wrong ~= name then
        it(("misspelt is refused by %s, with the right name: %s"):format(each.name, wrong),
          function()
            local message = failure_with(each, given, { [wrong] = 1 })
            assert.is_truthy(message:find(word_of(each), 1, true), message)
            assert.is_truthy(message:find(("'%s'"):format(wrong), 1, true), message)
            assert.is_truthy(message:find(("did you mean '%s'?"):format(name), 1, true), message)
          end)
      end
      it(("of a wrong type is refused by %s, with its name: %s"):format(each.name, name), function()
        local message = assert(failure_with(each, given, { [name] = VALUES[1][2] }), "no error")
        assert.is_truthy(message:find(name, 1, true), message)
        assert.is_truthy(message:find("a thread", 1, true), message)
        assert.is_truthy(message:find("expected", 1, true), message)
      end)
    end
  end

  it("was found for many names", function() assert.is_true(tried > 60, tried) end)

  for _, row in ipairs(core.contracts()) do
    local attribute = row.method and #row.operands == 1 and row.attributes[1]
    if attribute and #attribute.name > 3 then
      local wrong = misspell(attribute.name)
      it(("misspelt is refused by t:%s: %s"):format(row.name, wrong), function()
        local message = failure({ call = core.methods[row.name], before = { x } }, { [wrong] = 1 })
        assert.is_truthy(message and message:find(("did you mean '%s'?"):format(attribute.name), 1,
          true), message)
      end)
    end
  end
end)

-- ---- names ---------------------------------------------------------------------------------------

describe("a misspelt name is refused, with the right one:", function()
  local function objects()
    local pipe = gp.pipeline(nn.Sequential { nn.Linear(2, 2) }, { loss = nn.MSELoss() })
    local opt = optim.AdamW(pipe:parameters(), { lr = 0.1 })
    return pipe, opt
  end
  local pipe, opt = objects()
  for _, case in ipairs {
    { gp, "zerso", "zeros" }, { nn, "Liner", "Linear" }, { nn.init, "nomral", "normal" },
    { optim, "Admw", "AdamW" }, { optim.schedule, "cosin", "cosine" },
    { gp.data, "tesnors", "tensors" }, { gp.schedule, "bulid", "build" },
    { x, "resahpe", "reshape" }, { nn.ReLU(), "paramters", "parameters" },
    { pipe, "evalaute", "evaluate" }, { opt, "zero_gard", "zero_grad" },
    { opt, "wieght_decay", "weight_decay" }, { opt.groups[1], "wieght_decay", "weight_decay" },
    { gp.data.tensors(x, x), "shufle", "shuffle" },
    { gp.schedule.build("1f1b", { devices = 2, chunks = 2 }), "simulat", "simulate" },
  } do
    it(case[2], function()
      local good, message = pcall(function() return case[1][case[2]] end)
      assert.is_false(good)
      assert.is_truthy(message:find(("'%s'"):format(case[2]), 1, true), message)
      assert.is_truthy(message:find(("did you mean '%s'?"):format(case[3]), 1, true), message)
    end)
  end

  it("a name far from all others is nil, so that scripts may test for it", function()
    assert.is_nil(opt.xyzzy)
    assert.is_nil(opt.groups[1].xyzzy)
    assert.is_nil(opt.momentum)
    assert.is_nil(nn.ReLU().xyzzy)
  end)
  teardown(function() pipe:close() end)
end)
