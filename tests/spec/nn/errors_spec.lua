-- tests/spec/nn/errors_spec.lua - the texts of wrong calls: who, what is, what was expected.
--
-- Every error is reported at the line of the script that made the mistake; the last test checks
-- that.
local gp = require "gpipe"
local nn = gp.nn

local relu = nn.ReLU()
local Bad, None = nn.class("Bad"), nn.class("None")
function Bad:init(value) self.value = value end
function Bad:forward() return self.value end
function None.forward() end
local Empty = nn.class("Empty")
local x = gp.ones { 2, 4 }

-- { wrong call, text }
local cases = {
  -- sizes
  { function() nn.Linear(-3, 2) end, "nn.Linear: in_features is -3, expected a positive integer" },
  { function() nn.Linear(3) end, "nn.Linear: out_features is nil, expected a positive integer" },
  { function() nn.Linear(3, 3.5) end,
    "nn.Linear: out_features is 3.5 (float), expected a positive integer" },
  { function() nn.Linear("7", 2) end,
    'nn.Linear: in_features is "7" (string), expected a positive integer' },
  { function() nn.Embedding(0, 2) end, "nn.Embedding: n is 0, expected a positive integer" },
  { function() nn.LayerNorm({ 3, 0 }) end, "nn.LayerNorm: dim is 0, expected a positive integer" },
  { function() nn.LayerNorm({ 3, 4 })(gp.ones { 2, 4, 3 }) end,
    "LayerNorm 3x4: the input is 2x4x3, expected [.., 3, 4]" },
  { function() nn.CausalSelfAttention(10, 3) end,
    "nn.CausalSelfAttention: dim is 10 and heads is 3, expected heads to divide dim" },
  { function() nn.CausalSelfAttention(12, 4, { kv_heads = 3 }) end,
    "nn.CausalSelfAttention: heads is 4 and kv_heads is 3, expected kv_heads to divide heads" },
  { function() nn.CausalSelfAttention(12, 4, { kv_heads = 0 }) end,
    "nn.CausalSelfAttention: option 'kv_heads' is 0, expected an integer >= 1" },
  { function() nn.CausalSelfAttention(12, 4, { kvheads = 2 }) end,
    "nn.CausalSelfAttention: unknown option 'kvheads' (did you mean 'kv_heads'?)" },
  { function() nn.Parameter(3, 0) end,
    "nn.Parameter: shape is 3, expected a list of sizes such as {32, 128}" },
  { function() nn.Parameter({ 3, -1 }, 0) end,
    "nn.Parameter: shape[2] is -1, expected a positive integer" },
  { function() nn.Parameter({ 3 }) end,
    "nn.Parameter: init is nil, expected an initialiser such as nn.init.normal(0, 0.02)" },
  { function() nn.Parameter({ 3 }, gp.ones { 4 }) end, "nn.Parameter: init is 4, expected 3" },
  { function() nn.Parameter({ 3 }, nn.init.xavier_normal()) end,
    "nn.init.xavier_normal: shape is 3, expected at least two dimensions" },
  { function() nn.Softmax(0) end, "nn.Softmax: dim is 0, expected 1 or more, or negative" },
  { function() nn.init.normal(0, -1) end,
    "nn.init.normal: std is -1, expected a number that is not negative" },
  { function() nn.init.uniform(1, 0) end, "nn.init.uniform: the range is 1 to 0" },
  { function() nn.Conv2d(3, 8, 0) end,
    "nn.Conv2d: kernel is 0, expected an integer of at least 1, or {height, width}" },
  { function() nn.Conv2d(3, 8, { 3, 3, 3 }) end, "nn.Conv2d: kernel is {3, 3, 3}, expected" },
  { function() nn.Conv2d(3, 8, 3, { stride = 1.5 }) end, "nn.Conv2d: stride is 1.5" },
  { function() nn.Conv2d(3, 8, 3, { padding = -1 }) end, "nn.Conv2d: padding is -1" },
  { function() nn.Conv2d(3, 8, 3, { padding = "full" }) end,
    'nn.Conv2d: padding is "full" (string), expected numbers, "same" or "valid"' },
  { function() nn.Conv2d(3, 8, 3, { padding = "same", stride = 2 }) end,
    'nn.Conv2d: padding is "same" and stride 2, expected stride 1' },
  { function() nn.Conv2d(3, 8, 3, { groups = 2 }) end,
    "nn.Conv2d: in_channels is 3, expected a multiple of the 2 groups" },
  { function() nn.Conv2d(3, 8, 3, { dilatoin = 2 }) end,
    "nn.Conv2d: unknown option 'dilatoin' (did you mean 'dilation'?)" },
  { function() nn.Conv1d(3, 8, { 3, 3 }) end, "nn.Conv1d: kernel is {3, 3}, expected an integer of" },
  { function() nn.ConvTranspose2d(3, 8, 3, { output_padding = 1 }) end,
    "nn.ConvTranspose2d: output_padding is 1, expected less than the stride, 1" },
  { function() nn.MaxPool2d(0) end,
    "nn.MaxPool2d: kernel is 0, expected an integer of at least 1, or {height, width}" },
  { function() nn.MaxPool2d(2, { strid = 2 }) end,
    "nn.MaxPool2d: unknown option 'strid' (did you mean 'stride'?)" },
  { function() nn.AvgPool1d({ 2, 2 }) end, "nn.AvgPool1d: kernel is {2, 2}, expected an integer of at least 1" },
  { function() nn.AdaptiveAvgPool2d() end, "nn.AdaptiveAvgPool2d: size is nil" },
  { function() nn.Upsample {} end, "nn.Upsample: neither of scale and size, expected one" },
  { function() nn.Upsample { scale = 2, size = 4 } end,
    "nn.Upsample: both of scale and size, expected one" },
  { function() nn.Upsample { scale = -1 } end, "nn.Upsample: scale is -1, expected a number above 0" },
  { function() nn.Upsample { scale = 2, mode = "cubic" } end, "nn.Upsample: option 'mode'" },
  { function() nn.ReflectionPad2d(-1) end, "nn.ReflectionPad2d: padding is -1" },
  { function() nn.ZeroPad2d { 1, 2, 3 } end,
    "nn.ZeroPad2d: padding is {1, 2, 3}, expected an integer of at least 0, {height, width}, or {left" },

  -- options and words
  { function() nn.Linear(3, 4, { bais = false }) end,
    "nn.Linear: unknown option 'bais' (did you mean 'bias'?)" },
  { function() nn.Dropout(1.5) end,
    "nn.Dropout: p is 1.5 (float), expected a number from 0 to 1" },
  { function() nn.Dropout(0 / 0) end, "expected a number from 0 to 1" },
  { function() nn.GELU("tahn") end, 'nn.GELU: mode is "tahn" (string), expected "erf" or "tanh"' },
  { function() nn.MSELoss { reduction = "mena" } end, "nn.MSELoss: option 'reduction'" },
  { function() nn.init.kaiming_normal { mod = "fan_in" } end,
    "nn.init.kaiming_normal: unknown option 'mod' (did you mean 'mode'?)" },
  { function() return nn.Linaer end, "nn: there is no 'Linaer' (did you mean 'Linear'?)" },
  { function() nn.Sequential {}:paramters() end,
    "nn.Sequential: there is no 'paramters' (did you mean 'parameters'?)" },
  { function() nn.class(3) end, "nn.class: name is 3, expected a word" },
  { function() nn.class("A", relu) end, "nn.class: base is a nn.ReLU, expected a module class" },

  -- containers
  { function() nn.Sequential(relu) end,
    "nn.Sequential: the layers are a nn.ReLU, expected a list" },
  { function() nn.Sequential { relu, 3 } end,
    "nn.Sequential: layer 2 is 3, expected a module" },
  { function() nn.Sequential { relu, nil, nn.Tanh() } end,
    "nn.Sequential: layer 2 is nil, expected a module" },
  { function() nn.Sequential { nn.Tanh } end,
    "nn.Sequential: layer 1 is the class nn.Tanh, expected an instance: nn.Tanh(...)" },
  { function() nn.Sequential { relu, relu } end,
    "nn.Sequential: layer 2 is the same object as layer 1" },
  { function() nn.Sequential { head = relu } end,
    'nn.Sequential: there is a key "head" (string), expected a list' },
  { function() nn.Sequential { { "a", relu }, { "a", nn.Tanh() } } end,
    "nn.Sequential: layers 1 and 2 are both named 'a'" },
  { function() nn.Sequential { { "a.b", relu } } end, "is 'a.b', expected one without a dot" },
  { function() nn.Sequential { { "train", relu } } end, "is 'train', which is a method" },
  { function() nn.Sequential { relu }[3] = nn.Tanh() end,
    "nn.Sequential: there is no layer 3 to set, the model has 1" },
  { function() nn.Residual { relu } end,
    "nn.Residual: body is a table, expected a module (several go into a Sequential)" },
  { function() nn.Residual(relu, nn.Tanh()) end,
    "nn.Residual: there are 2 arguments, expected one module" },

  -- calls
  { function() nn.Sequential { nn.Linear(4, 2) }(nil) end,
    "1 (Linear 4 -> 2): input is nil, expected a tensor" },
  { function() nn.Sequential { { "fc", nn.Linear(4, 2) } }({ 1, 2, 3, 4 }) end,
    "fc (Linear 4 -> 2): input is a table, expected a tensor" },
  { function() nn.Sequential { relu, Bad(7) }(x) end,
    "2 (Bad): forward returned 7, expected a tensor" },
  { function() nn.Sequential { None() }(x) end,
    "1 (None): forward returned nothing, expected a tensor" },
  { function() nn.Residual(Bad {})(x) end,
    "Residual: the body (Bad) returned a table, expected a tensor" },
  { function() Empty()(x) end, "Empty: there is no forward, expected `function Empty:forward(x)`" },
  { function() nn.Sequential { nn.Residual(nn.CausalSelfAttention(4, 2)) }(x) end,
    "1.body (CausalSelfAttention 4, 2 heads): input is 2x4, expected ?x?x4" },
  { function() nn.Flatten(3)(x) end, "Flatten 3 .. -1: input is 2x4, expected dimensions 3 to -1" },
  { function() nn.Sequential { nn.Linear(5, 2) }(x) end, "1 (Linear 5 -> 2)" },

  -- losses
  { function() nn.CrossEntropyLoss()(x, gp.ones { 2 }) end,
    "CrossEntropyLoss: target is f32, expected class ids of dtype i64, i32 or u8" },
  { function() nn.CrossEntropyLoss()(x, gp.zeros({ 4 }, { dtype = "i64" })) end,
    "CrossEntropyLoss: output is 2x4 and target is 4, expected a target of 2" },
  { function() nn.MSELoss()(x, gp.ones { 4, 2 }) end,
    "MSELoss: output is 2x4 and target is 4x2, expected equal shapes" },
  { function() nn.MSELoss()(x) end, "MSELoss: target is nil, expected a tensor" },

  -- names
  { function() nn.Linear(2, 2):freeze("head") end,
    "freeze: no parameter of nn.Linear matches \"head\" (string) (names look like 'weight')" },
  { function() nn.Linear(2, 2):parameters("[") end, 'parameters: the pattern is "[" (string)' },
  { function() nn.Linear(2, 2):summary(3) end,
    "summary: input_shape is 3, expected a list of sizes" },
}

describe("a wrong call", function()
  for i, case in ipairs(cases) do
    it(("%d says: %s"):format(i, case[2]), function()
      local ok, text = pcall(case[1])
      assert.is_false(ok)
      assert(tostring(text):find(case[2], 1, true), tostring(text))
    end)
  end

  it("is reported at the line of the script", function()
    local line = debug.getinfo(1, "l").currentline + 1
    local _, text = pcall(function() nn.Sequential { nn.Residual(nn.Linear(4, 4)) }(nil) end)
    assert.are.equal(line, tonumber(text:match("errors_spec.lua:(%d+):")))
  end)
end)
