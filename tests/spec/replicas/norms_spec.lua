-- tests/spec/replicas/norms_spec.lua - buffers that forward passes write get the bits of one
-- pipeline with as many micro-batches, whichever replicas and processes run these.

local child = dofile "tests/child.lua"
local gp = require "gpipe"
local nn, optim = gp.nn, gp.optim

local TRAIN = "tests/support/replicas_norms.lua"

-- Lines of a cell {replicas, chunks}, with so many devices of a replica, over so many ranks.
local function lines_of(ranks, cell, stages, schedules)
  local words = ranks > 1 and { "--ranks", tostring(ranks) } or {}
  for _, word in ipairs { TRAIN, cell[1], cell[2], stages, table.unpack(schedules) } do
    words[#words + 1] = tostring(word)
  end
  local out, err, code = child.run(words)
  assert.equal("", err:gsub("gpipe: [^\n]*\n", "")) -- remarks about the options are no errors
  assert.equal(0, code)
  local lines = {}
  for line in out:gmatch "[^\n]+" do lines[#lines + 1] = line end
  return lines
end

local function compare(wanted, got)
  assert.truthy(#wanted > 100)
  for i, line in ipairs(wanted) do assert.equal(line, got[i]) end
  assert.equal(#wanted, #got)
end

local one = {}

local function check(ranks, stages, schedules, cells)
  local key = table.concat(schedules, " ")
  one[key] = one[key] or lines_of(1, { 1, 8 }, 2, schedules)
  for _, cell in ipairs(cells) do compare(one[key], lines_of(ranks, cell, stages, schedules)) end
end

describe("running statistics and other buffers", function()
  it("have the bits of one replica in two, four and eight", function()
    check(1, 2, { "1f1b" }, { { 2, 4 }, { 4, 2 }, { 8, 1 } })
    check(1, 1, { "1f1b" }, { { 1, 8 }, { 4, 2 } })
  end)

  it("have them under every synchronous schedule", function()
    check(1, 2, { "gpipe", "interleaved_1f1b", "zb_h1" }, { { 2, 4 } })
  end)

  it("have them over two, three and four processes", function()
    check(2, 2, { "1f1b" }, { { 1, 8 }, { 2, 4 }, { 8, 1 } })
    check(3, 2, { "1f1b" }, { { 2, 4 } })
    check(4, 2, { "1f1b" }, { { 4, 2 }, { 2, 4 } })
  end)

  it("have them where two copies of the weights share a mini-batch", function()
    check(1, 2, { "dualpipe" }, { { 1, 8 }, { 2, 4 } })
    check(2, 2, { "dualpipe" }, { { 1, 8 } })
  end)
end)

describe("a layer that writes a Buffer", function()
  local X, Y = gp.randn({ 16, 4 }, { seed = 1 }), gp.randn({ 16, 2 }, { seed = 2 })

  local function pipeline(layer, more)
    gp.seed(3)
    local all = { balance = { 2, 1 }, chunks = 2, replicas = 2, loss = nn.MSELoss() }
    for key, value in pairs(more or {}) do all[key] = value end
    return gp.pipeline(nn.Sequential { nn.Linear(4, 6), layer, nn.Linear(6, 2) }, all)
  end

  local Centred = nn.class "Centred" -- subtracts what it has seen so far
  function Centred:init(n) self.mean = nn.Buffer({ n }, 0) end
  function Centred:forward(x)
    local y = x - self.mean
    self.mean:copy_(self.mean * 0.9 + x:mean(1) * 0.1)
    return y
  end

  it("may not return what depends on the Buffer if replicas share the mini-batch", function()
    local pipe <close> = pipeline(Centred(6))
    local good, message = pcall(pipe.step, pipe, X, Y)
    assert.is_false(good)
    assert.matches("2 %(Centred.*what it returns depends on a Buffer that forward writes, and the "
      .. "schedule runs every stage on 2 devices: expected one copy of the weights, no replicas",
      message)
    local alone <close> = pipeline(Centred(6), { replicas = 1 })
    assert.truthy(alone:step(X, Y) > 0)
  end)

  it("keeps what it had if a step fails, on any replica", function()
    local norm = nn.BatchNorm1d(6)
    local pipe <close> = pipeline(norm, { finite = true })
    pipe:step(X, Y)
    local before = pipe:state_dict()
    local wrong = X:clone()
    wrong[16][1] = 0 / 0
    assert.is_false(pcall(pipe.step, pipe, wrong, Y))
    for name, value in pairs(pipe:state_dict()) do
      assert.equal(before[name]:contiguous():bytes(), value:contiguous():bytes())
    end
    assert.equal(4, norm.num_batches_tracked:value():item())
  end)

  it("writes it in the order of the micro-batches, behind their forward passes", function()
    local pipe <close> = pipeline(nn.BatchNorm1d(6))
    pipe:use(optim.SGD(pipe:parameters(), { lr = 0.1 }))
    pipe:step(X, Y)
    local lines, say = {}, print
    _G.print = function(text) lines[#lines + 1] = text end
    local good, message = pcall(pipe.lowered, pipe)
    _G.print = say
    assert(good, message)
    local page = table.concat(lines, "\n")
    assert.matches("0F0: .*writes .*records%[0%]", page)
    assert.matches("0S0: waits for the records of another copy of stage 0 from 0SEND.*0S1: .*0S2: "
      .. ".*0S3: ", page)
    assert.matches("0S3: reads [^\n]*records%[3%][^\n]*; writes [^\n]*buffers", page)
    assert.falsy(page:find("1S0", 1, true))
  end)
end)
