-- tests/spec/cli/options_spec.lua - all option tables go through one checker, whose texts are
-- promised.

local errors = require "gpipe.errors"
local options = require "gpipe.options"

local spec = {
  kernel = { type = "integer", min = 1, default = 3 },
  stride = { type = { "integer", "table" }, default = 1 },
  mode = { choices = { "same", "valid" }, type = "string", default = "same" },
  bias = { type = "boolean", default = true },
  lr = { type = "number", above = 0 },
}

local function message(opts, rules)
  local ok, text = pcall(options.check, "nn.Conv2d", opts, rules or spec)
  assert.is_false(ok)
  return text
end

describe("options.check", function()
  it("fills in the defaults", function()
    local defaults = { kernel = 3, stride = 1, mode = "same", bias = true }
    assert.same(defaults, options.check("f", nil, spec))
  end)

  it("keeps false, and turns 5.0 into 5", function()
    local o = options.check("f", { bias = false, kernel = 5.0 }, spec)
    assert.is_false(o.bias)
    assert.equal("integer", math.type(o.kernel))
  end)

  local cases = {
    { { kernal = 2 }, "nn.Conv2d: unknown option 'kernal' (did you mean 'kernel'?)" },
    { { krenel = 2 }, "unknown option 'krenel' (did you mean 'kernel'?)" },
    { { padding = 2 }, "unknown option 'padding' (options are bias, kernel, lr, mode, stride)" },
    { { 2 }, "unknown option '1'" },
    { { kernel = "same" }, "option 'kernel' is \"same\" (string), expected an integer >= 1" },
    { { kernel = 2.5 }, "option 'kernel' is 2.5 (float), expected an integer >= 1" },
    { { kernel = 0 }, "option 'kernel' is 0, expected an integer >= 1" },
    { { kernel = "3" }, "option 'kernel' is \"3\" (string), expected an integer" },
    { { lr = 0 / 0 }, "option 'lr' is nan (float), expected a number > 0" },
    { { mode = "sane" }, "expected one of \"same\", \"valid\" (did you mean 'same'?)" },
    { { stride = true }, "option 'stride' is true, expected an integer or a table" },
    { "x", "the options are \"x\" (string), expected a table" },
    { setmetatable({ 1 }, { __name = "nn.Linear" }),
      "the options are a nn.Linear, expected a table (options are bias, kernel, lr, mode, stride)" },
  }
  for _, case in ipairs(cases) do
    it("says: " .. case[2], function() assert.truthy(message(case[1]):find(case[2], 1, true)) end)
  end

  it("names a missing option", function()
    assert.truthy(message({}, { inp = { required = true } }):find("missing option 'inp'", 1, true))
  end)

  it("takes elements under the rule '...'", function()
    local rules = { ["..."] = { type = "string" } }
    assert.same({ "a", "b" }, options.check("f", { "a", "b" }, rules))
    assert.truthy(message({ "a", 2 }, rules):find("element 2 is 2, expected a string", 1, true))
  end)

  it("raises at the user's line", function()
    local line = debug.getinfo(1, "l").currentline + 1
    local ok, text = pcall(function() options.check("f", { x = 1 }, spec) end)
    assert.is_false(ok)
    assert.truthy(text:find("options_spec.lua:" .. line .. ":", 1, true))
  end)
end)

describe("errors.suggest", function()
  it("finds the nearest name within two edits, and none beyond", function()
    local names = { "gpipe", "interleaved_1f1b" }
    assert.equal("interleaved_1f1b", errors.suggest("interleaved_1fb1", names))
    assert.is_nil(errors.suggest("zzz", { "gpipe", "1f1b" }))
    assert.is_nil(errors.suggest("x", { "lr" }))
  end)
end)
