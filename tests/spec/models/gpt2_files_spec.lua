-- tests/spec/models/gpt2_files_spec.lua - GPT-2's folders: every form that is in use loads, and
-- damaged files are distinguished from other ones.
local gp = require "gpipe"
local core = require "gpipe.core"
local fails_with = require "tests.support.expect".fails_with
local training = require "tests.support.training"
local gpt2 = gp.models.gpt2

local FOLDER = "tests/golden/gpt2"
local ids = gp.tensor({ { 5, 1, 60, 7 } }, { dtype = "i64" })

local function read(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

local function write(path, text)
  local file <close> = assert(io.open(path, "wb"))
  assert(file:write(text))
end

describe("a folder of GPT-2", function()
  local folder
  before_each(function()
    folder = os.tmpname()
    os.remove(folder)
    assert(os.execute("mkdir " .. folder))
    write(folder .. "/config.json", read(FOLDER .. "/config.json"))
  end)
  after_each(function() os.execute("rm -r " .. folder) end)

  local function tensors() return assert(gp.load(FOLDER .. "/model.safetensors")) end

  -- Saves the weights after `change` as one file.
  local function save(change)
    local given, made = tensors(), {}
    for name, tensor in pairs(given) do change(made, name, tensor) end
    assert(gp.save(folder .. "/model.safetensors", made))
  end

  local function logits(from) return assert(gpt2.load(from)):eval()(ids) end
  local function is_same() assert.is_true(gp.equal(logits(FOLDER), logits(folder))) end

  it("loads without the prefix, with masks and with the head's copy", function()
    save(function(made, name, tensor)
      local plain = name:gsub("^transformer%.", "")
      made[plain] = tensor
      if plain == "wte.weight" then made["lm_head.weight"] = tensor:clone() end
      made["h.0.attn.bias"] = gp.ones({ 1, 1, 12, 12 }, { dtype = "u8" })
      made["h.1.attn.masked_bias"] = gp.tensor(-1e4)
    end)
    is_same()
  end)

  it("loads from several files that an index lists", function()
    local given, map, parts = tensors(), {}, { {}, {}, {} }
    local sorted = {}
    for name in pairs(given) do sorted[#sorted + 1] = name end
    table.sort(sorted)
    for i, name in ipairs(sorted) do
      parts[i % 3 + 1][name] = given[name]
      map[i] = ('"%s": "part-%d.safetensors"'):format(name, i % 3 + 1)
    end
    for i = 1, 3 do assert(gp.save(("%s/part-%d.safetensors"):format(folder, i), parts[i])) end
    local index = folder .. "/model.safetensors.index.json"
    write(index, ('{"metadata": {"total_size": 1}, "weight_map": {%s}}'):format(
      table.concat(map, ",")))
    is_same()
    os.remove(folder .. "/part-2.safetensors")
    local model, message, code = gpt2.load(folder)
    assert.is_nil(model)
    assert.equal("io", code)
    assert.is_truthy(message:find("part-2.safetensors", 1, true))
    for _, bad in ipairs { '{"weight_map": {"a": "../x"}}', '{"weight_map": {"a": 3}}', "{}", "[" } do
      write(index, bad)
      model, message, code = gpt2.load(folder)
      assert.is_nil(model)
      assert.equal("format", code)
      assert.is_truthy(message:find(index, 1, true))
    end
  end)

  it("loads halves as the f32 numbers that they are", function()
    for _, dtype in ipairs { "f16", "bf16" } do
      save(function(made, name, tensor) made[name] = tensor:to(dtype) end)
      local model = assert(gpt2.load(folder))
      local name = "transformer.h.1.mlp.c_proj.bias"
      assert.is_true(gp.equal(tensors()[name]:to(dtype):to "f32", model.h_1.proj.bias:value()))
    end
  end)

  it("is saved with the names of transformers, and loads again", function()
    local model = assert(gpt2.load(FOLDER))
    assert(gpt2.save(model, folder))
    is_same()
    assert.is_nil(training.differing(tensors(), (gp.load(folder .. "/model.safetensors"))))
    local pipe <close> = gp.pipeline(model, { balance = { 1, 2, 1 } })
    assert(gpt2.save(pipe, folder))
    is_same()
    local original, saved = core.json_decode(read(FOLDER .. "/config.json")),
      core.json_decode(read(folder .. "/config.json"))
    for _, name in ipairs { "n_layer", "n_embd", "n_head", "n_positions", "vocab_size", "model_type",
      "activation_function", "resid_pdrop", "layer_norm_epsilon", "tie_word_embeddings" } do
      assert.equal(original[name], saved[name], name)
    end
  end)

  it("keeps a head of its own where the configuration says so", function()
    local text = read(FOLDER .. "/config.json")
    write(folder .. "/config.json", (text:gsub('"tie_word_embeddings": true',
      '"tie_word_embeddings": false')))
    save(function(made, name, tensor)
      made[name] = tensor
      if name:find "wte" then made["lm_head.weight"] = tensor * 2 end
    end)
    local model = assert(gpt2.load(folder))
    assert.is_true(gp.equal(logits(folder), logits(FOLDER) * 2))
    assert(gpt2.save(model, folder))
    assert.is_true(gp.equal(logits(folder), logits(FOLDER) * 2))
  end)

  it("names at once all that does not fit", function()
    save(function(made, name, tensor)
      if name:find "h.1.ln_2.weight" then return end
      if name:find "wpe" then tensor = tensor:narrow(1, 1, 11):contiguous() end
      if name:find "ln_f.bias" then tensor = tensor:to "i64" end
      made[name] = tensor
      made["h.2.extra"] = gp.ones { 1 }
    end)
    local model, message, code = gpt2.load(folder)
    assert.is_nil(model)
    assert.equal("format", code)
    for _, part in ipairs { "4 faults", "missing: h.1.ln_2.weight (20)",
      "wrong: wpe.weight is 11x20, expected 12x20", "wrong: ln_f.bias is i64",
      "unexpected: h.2.extra", folder } do
      assert.is_truthy(message:find(part, 1, true), message)
    end
  end)

  it("refuses a head that differs from the table it should share", function()
    save(function(made, name, tensor)
      made[name] = tensor
      if name:find "wte" then made["lm_head.weight"] = tensor * 2 end
    end)
    local _, message = gpt2.load(folder)
    assert.is_truthy(message:find("lm_head.weight differs from wte.weight", 1, true))
  end)

  it("names all fields of config.json that are not of this model", function()
    save(function(made, name, tensor) made[name] = tensor end)
    local good = read(FOLDER .. "/config.json")
    for _, case in ipairs { { '"n_layer": 2', '"n_layer": 1000000000', "n_layer is 1000000000" },
      { '"n_layer": 2', '"n_layer": -1', "n_layer is -1, expected a positive integer" },
      { '"n_embd": 20', '"n_embd": 2.5', "n_embd is 2.5" },
      { '"n_head": 2', '"n_head": 3', "n_head is 3, expected what divides n_embd, 20" },
      { '"vocab_size": 61', '"vocab_size": 9e30', "vocab_size is 9e+30" },
      { '"model_type": "gpt2"', '"model_type": "llama"', 'model_type is "llama", expected "gpt2"' },
      { '"gelu_new"', '"swish"', 'activation_function is "swish"' },
      { "1e%-05", '"small"', 'layer_norm_epsilon is "small"' },
      { '"resid_pdrop": 0.0', '"resid_pdrop": 7', "resid_pdrop is 7" },
      { "^.", "<", "config.json" }, { "^.*$", "[1]", "config.json" },
      { "}%s*$", "", "config.json" } } do
      write(folder .. "/config.json", (good:gsub(case[1], case[2])))
      local model, message, code = gpt2.load(folder)
      assert.is_nil(model, case[3])
      assert.equal("format", code)
      assert.is_truthy(message:find(case[3], 1, true), message)
      assert.is_truthy(message:find(folder, 1, true), message)
    end
    write(folder .. "/config.json", '{"model_type": "bert", "n_layer": 0, "embd_pdrop": true}')
    local _, message = gpt2.load(folder)
    for _, name in ipairs { "model_type", "n_layer", "embd_pdrop" } do
      assert.is_truthy(message:find(name .. " is ", 1, true), message)
    end
  end)

  it("says what a file without weights is", function()
    local path = folder .. "/model.safetensors"
    for _, text in ipairs { "", "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n",
      "<!DOCTYPE html><html></html>", "\x80\x02}q\0.", read(FOLDER .. "/model.safetensors"):sub(1, -9) } do
      write(path, text)
      local model, message, code = gpt2.load(folder)
      assert.is_nil(model)
      assert.equal("format", code)
      assert.is_truthy(message:find(path, 1, true), message)
    end
    os.remove(path)
    write(folder .. "/pytorch_model.bin", "\x80\x02.")
    local _, message, code = gpt2.load(folder)
    assert.equal("io", code)
    assert.is_truthy(message:find("pytorch_model.bin is a pickle", 1, true))
    _, message, code = gpt2.load(folder .. "/none")
    assert.equal("io", code)
    assert.is_truthy(message:find("none/config.json", 1, true))
  end)

  it("survives every bit flip of config.json and many of the weights", function()
    save(function(made, name, tensor) made[name] = tensor end)
    local function check(path, from, last, step)
      local good = read(path)
      for at = from, math.min(last, #good), step do
        local flipped = string.char(good:byte(at) ~ (1 << at % 8))
        write(path, good:sub(1, at - 1) .. flipped .. good:sub(at + 1))
        local model, message = gpt2.load(folder)
        assert.is_true(model ~= nil or message:find(folder, 1, true) ~= nil, message)
      end
      write(path, good)
    end
    check(folder .. "/config.json", 1, math.huge, 1)
    check(folder .. "/model.safetensors", 1, 2600, 7)
  end)

  it("is refused for a model that is not a GPT-2", function()
    fails_with("expected one that gp.models.gpt2 made", gpt2.save, gp.nn.Linear(2, 2), folder)
    fails_with("folder is 3, expected a string", gpt2.load, 3)
    local done, message, code = gpt2.save(gpt2 { layers = 1, width = 4, heads = 1, context = 4,
      vocabulary = 5 }, folder .. "/none")
    assert.is_nil(done)
    assert.equal("io", code)
    assert.is_truthy(message:find(folder, 1, true))
  end)
end)

describe("core.json_decode", function()
  it("gives Lua values, leaves null out of objects and keeps its place in lists", function()
    assert.same({ a = 1, b = { 2.5, false, "x\n", true }, d = {} },
      core.json_decode '{"a": 1, "b": [2.5, null, "x\\n", true], "c": null, "d": {}}')
    assert.equal("integer", math.type(core.json_decode " 12 "))
  end)

  it("refuses text that is not JSON", function()
    for _, text in ipairs { "", "{", '{"a": 1, "a": 2}', "[1,]", "01", "nul", '"\\u0000"', "1 2",
      ("["):rep(200) .. ("]"):rep(200) } do
      local value, message, code = core.json_decode(text)
      assert.is_nil(value, text)
      assert.equal("format", code)
      assert.is_string(message)
    end
  end)
end)
