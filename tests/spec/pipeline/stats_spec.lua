-- tests/spec/pipeline/stats_spec.lua - what a pipeline reports about its last pass: stats, trace,
-- tostring.
local fails_with = require("tests.support.expect").fails_with
local models = require "tests.support.models"
local _, pipe_of, x, y = models.classifier()

-- ---- figures -----------------------------------------------------------------------------------

describe("stats", function()
  it("hold seconds, and per device bubble, activations and bytes", function()
    local pipe <close> = pipe_of { chunks = 4 }
    assert.equal(0, pipe.stats.seconds)
    pipe:step(x, y)
    local stats = pipe.stats
    assert.is_true(stats.seconds > 0)
    for _, key in ipairs { "bubble", "peak_live", "peak_bytes" } do assert.equal(2, #stats[key]) end
    for d = 1, 2 do
      assert.is_true(stats.bubble[d] >= 0 and stats.bubble[d] <= 1)
      assert.is_true(stats.peak_bytes[d] > 0)
    end
  end)

  it("show min(p - r, m) activations for 1F1B and m for GPipe", function()
    for _, chunks in ipairs { 1, 2, 4, 7 } do
      for _, name in ipairs { "1f1b", "gpipe", "naive" } do
        local pipe <close> = pipe_of { balance = { 1, 1, 1, 1 }, chunks = chunks, schedule = name }
        pipe:step(x, y)
        for r = 0, 3 do
          local wanted = name == "1f1b" and math.min(4 - r, chunks) or name == "naive" and 1
            or chunks
          assert.equal(wanted, pipe.stats.peak_live[r + 1])
        end
      end
    end
  end)

  it("show the memory that recomputation and 1F1B save", function()
    local function bytes(options)
      options.balance, options.chunks = { 3, 1 }, 7
      local pipe <close> = pipe_of(options)
      pipe:step(x, y)
      return pipe.stats.peak_bytes[1]
    end
    local never = bytes { checkpoint = "never", schedule = "gpipe" }
    assert.is_true(bytes { checkpoint = "never", schedule = "1f1b" } < never)
    assert.is_true(bytes { checkpoint = "always", schedule = "gpipe" } < never)
  end)
end)

-- Parses JSON as far as traces use it: text without escapes, numbers, lists, objects. Raises where
-- the text is not JSON.
local function parse_json(text)
  local at = 1
  local value
  local function skip(pattern)
    local found = text:match("^%s*(" .. pattern .. ")%s*", at)
    if not found then error(("no %s at %d: %s"):format(pattern, at, text:sub(at, at + 30)), 0) end
    at = select(2, text:find("^%s*" .. pattern .. "%s*", at)) + 1
    return found
  end
  local function list(close, entry)
    local found = {}
    if text:match("^%s*" .. close, at) then skip(close) return found end
    repeat entry(found) until skip("[," .. close .. "]") ~= ","
    return found
  end
  function value()
    local first = text:match("^%s*(.)", at)
    if first == "{" then
      skip "{"
      return list("}", function(found)
        local key = skip '"[^"\\]*"'
        skip ":"
        found[key:sub(2, -2)] = value()
      end)
    elseif first == "[" then
      skip "%["
      return list("%]", function(found) found[#found + 1] = value() end)
    elseif first == '"' then
      return skip('"[^"\\]*"'):sub(2, -2)
    end
    return tonumber(skip "-?%d[%d.eE+-]*")
  end
  local result = value()
  assert(at > #text, "something follows")
  return result
end

describe("trace", function()
  it("writes the last pass as Chrome trace JSON", function()
    local path = os.tmpname()
    local pipe <close> = pipe_of { chunks = 2, checkpoint = "always" }
    fails_with("the pipeline has not run yet, expected a step before", pipe.trace, pipe, path)
    pipe:step(x, y)
    assert.is_true(pipe:trace(path))
    local file = assert(io.open(path))
    local made = parse_json(file:read "a")
    file:close()
    os.remove(path)
    local rows, names, arrows = { [0] = {}, {} }, {}, {}
    for _, event in ipairs(made.traceEvents) do
      if event.ph == "X" then
        assert.is_true(event.ts >= 0 and event.dur >= 0)
        assert.equal(("%d%s%d"):format(event.args.stage, event.name:match "%a", event.args.micro),
          event.name)
        table.insert(rows[event.tid], event.name)
      elseif event.cat == "flow" then
        arrows[event.ph] = (arrows[event.ph] or 0) + 1
      elseif event.name == "thread_name" then
        names[event.tid] = event.args.name
      end
    end
    assert.equal("0P0 0F0 0F1 0R0 0B0 0R1 0B1", table.concat(rows[0], " "))
    assert.equal("1P0 1C0 1C1 1F0 1R0 1B0 1F1 1R1 1B1", table.concat(rows[1], " "))
    assert.same({ [0] = "cpu:0", "cpu:1" }, names)
    assert.same({ s = 4, f = 4 }, arrows) -- two activations there, two gradients back
  end)

  it("returns nil, message and code where the file cannot be written", function()
    local pipe <close> = pipe_of()
    pipe:step(x, y)
    local ok, message, code = pipe:trace "/nonexistent/trace.json"
    assert.is_nil(ok)
    assert.equal("/nonexistent/trace.json: cannot save: No such file or directory", message)
    assert.equal("io", code)
    fails_with("trace: path is missing, expected a string", pipe.trace, pipe)
  end)
end)

describe("tostring", function()
  it("shows stages, devices and layers", function()
    local pipe <close> = pipe_of { devices = { { "cpu:0", threads = 1 }, { "cpu:3", threads = 2 } },
      schedule = { "1f1b", warmup = 2 } }
    assert.equal("pipeline: 2 stages, chunks 3, schedule 1f1b, checkpoint except_last\n"
      .. "  stage 0 on cpu:0 (1 thread): layers 1-2, 40 parameters\n"
      .. "  stage 1 on cpu:3 (2 threads): layers 3-4, 27 parameters", tostring(pipe))
  end)
end)
