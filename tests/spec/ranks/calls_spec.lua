-- tests/spec/ranks/calls_spec.lua - what scripts ask about ranks, and what all ranks do together.

local child = dofile "tests/child.lua"
local gp = require "gpipe"

local function run(ranks, text, ...)
  local script = child.file('local gp = require "gpipe"\n' .. text)
  local out, err, code = child.run { "--ranks", tostring(ranks), "--log-ranks", script, ... }
  os.remove(script)
  return out, err, code
end

local function lines_of(text)
  local lines = {}
  for line in text:gmatch "[^\n]+" do lines[#lines + 1] = line end
  table.sort(lines)
  return lines
end

describe("without a job", function()
  it("there is one rank, which is 0", function()
    assert.equal(0, gp.rank())
    assert.equal(1, gp.ranks())
  end)

  it("calls of all ranks are those of the one", function()
    gp.barrier()
    assert.same({ 7 }, gp.all_gather(7))
    assert.equal("x", gp.broadcast("x", 0))
  end)

  it("a device of another rank is refused with the way to get one", function()
    local good, message = pcall(gp.pipeline, gp.nn.Sequential { gp.nn.Linear(2, 2) },
      { devices = { "1/cpu:0" } })
    assert.is_false(good)
    assert.truthy(message:find("device '1/cpu:0' is of rank 1, expected a rank below 1: "
      .. "gpipe-lua --ranks 2", 1, true))
  end)
end)

describe("in a job", function()
  it("every process has a rank, and they draw the same random numbers", function()
    local out, err = run(3, "print(gp.rank(), gp.ranks(), #gp.all_gather(math.random()) == 3,\n"
      .. "  gp.all_gather(math.random(1 << 40))[1] == gp.all_gather(math.random(1 << 40))[3])")
    assert.equal("", err)
    assert.same({ "0\t3\ttrue\tfalse", "[1] 1\t3\ttrue\tfalse", "[2] 2\t3\ttrue\tfalse" },
      lines_of(out))
    out = run(2, "local a = gp.all_gather(math.random(1 << 40)) print(a[1] == a[2])")
    assert.same({ "[1] true", "true" }, lines_of(out))
  end)

  it("zero_grad leaves the gradients of layers that other ranks run alone", function()
    local out, err = run(2, [[
      local Head = gp.nn.class "Head" -- the embedding's weights once more, in the same stage
      function Head:init(embedding) self.embedding = embedding end
      function Head:forward(v) return v:matmul(self.embedding.weight:transpose(1, 2)) end
      local embedding = gp.nn.Embedding(20, 8)
      local model = gp.nn.Sequential { embedding, Head(embedding), gp.nn.Linear(20, 4) }
      local pipe <close> = gp.pipeline(model, {
        balance = { 2, 1 }, devices = 2, loss = gp.nn.CrossEntropyLoss(),
      })
      pipe:step(gp.randint(0, 20, { 8 }), gp.randint(0, 4, { 8 }))
      pipe:zero_grad()
      print(pipe:parameters()[gp.rank() + 1].param.grad:abs():sum():item())]])
    assert.equal("", err)
    assert.same({ "0.0", "[1] 0.0" }, lines_of(out))
  end)

  it("all_gather brings every kind of value to all ranks", function()
    local out, err = run(2, [[
      local r = gp.rank()
      local all = gp.all_gather {
        rank = r, 1.5, "text", { nested = r == 1 }, tensor = gp.full({ 2, 1 }, r, { dtype = "f64" }),
      }
      for i, one in ipairs(all) do
        assert(one.rank == i - 1 and one[1] == 1.5 and one[2] == "text")
        assert(one[3].nested == (i == 2) and math.type(one.rank) == "integer")
        assert(gp.equal(one.tensor, gp.full({ 2, 1 }, i - 1, { dtype = "f64" })))
      end
      assert(gp.all_gather(nil)[1] == nil and gp.all_gather("")[2] == "")
      print(gp.broadcast(r == 1 and "from 1" or "not this", 1))]])
    assert.equal("", err)
    assert.same({ "[1] from 1", "from 1" }, lines_of(out))
  end)

  it("broadcast refuses ranks that want the values of different ones", function()
    local out = run(2, "print(select(2, pcall(gp.broadcast, 1, gp.rank())))")
    local _, count = out:gsub("rank 0 wants the value of rank 0, rank 1 that of rank 1", "")
    assert.equal(2, count)
  end)

  it("all_gather refuses what cannot be sent, before anything is", function()
    local out = run(2, [[
      print(select(2, pcall(gp.all_gather, print)))
      print(select(2, pcall(gp.all_gather, setmetatable({}, {}))))
      print(#gp.all_gather(1))]])
    assert.truthy(out:find("the value is a function", 1, true) or out:find("function", 1, true))
    assert.truthy(out:find("the value is a table with a metatable, expected a plain table", 1, true))
    assert.truthy(out:find("\n2\n", 1, true))
  end)

  it("a rank that makes another call is named, with both calls", function()
    local _, err, code = run(2, [[
      if gp.rank() == 0 then gp.barrier() else gp.all_gather(1) end]])
    assert.truthy(err:match "rank 0 is in 'gp.barrier' at [^ ]*, rank 1 in 'gp.all_gather' at ")
    assert.equal(1, code)
  end)

  it("a model that differs between ranks is refused with the layer", function()
    local _, err, code = run(2, [[
      local width = gp.rank() == 0 and 4 or 5
      gp.pipeline(gp.nn.Sequential { gp.nn.Linear(3, width), gp.nn.Linear(width, 2) }, {})]])
    assert.truthy(err:find("gp.pipeline: the ranks differ: rank 0 has layer 1 Linear", 1, true))
    assert.truthy(err:find("rank 1 has layer 1 Linear", 1, true))
    assert.equal(1, code)
  end)

  it("a batch that differs between ranks is refused with the number of rows", function()
    local _, err = run(2, [[
      local model = gp.nn.Sequential { gp.nn.Linear(3, 2), gp.nn.Linear(2, 2) }
      local pipe <close> = gp.pipeline(model, { loss = gp.nn.MSELoss() })
      local rows = 4 + 2 * gp.rank()
      pipe:step(gp.ones { rows, 3 }, gp.ones { rows, 2 })]])
    assert.truthy(err:find("plan: rows of a micro-batch is 4 on rank 0 and 6 on rank 1", 1, true))
  end)

  it("takes batches that are views, also of the end of a large tensor", function()
    local text = [[
      local gp = require "gpipe"
      local nn = gp.nn
      gp.seed(1)
      local pipe <close> = gp.pipeline(nn.Sequential { nn.Linear(1024, 8), nn.Linear(8, 2) }, {
        balance = { 1, 1 }, chunks = 2, loss = nn.MSELoss() })
      local opt = gp.optim.SGD(pipe:parameters(), { lr = 0.1 })
      local x, y = gp.randn({ 5000, 1024 }, { seed = 1 }), gp.randn({ 5000, 2 }, { seed = 2 })
      x[20] = gp.rank() -- a row that no batch has
      for _, first in ipairs { 1, 9, 4993 } do
        print(("%a"):format(pipe:step(x:narrow(1, first, 8), y:narrow(1, first, 8))))
        opt:step()
      end]]
    local one, several = run(1, text), run(2, text)
    assert.equal(3, select(2, one:gsub("\n", "")))
    assert.equal(one, (several:gsub("%[1%][^\n]*\n", "")))
  end)

  it("a batch of other values is an error on all ranks", function()
    local out = run(2, [[
      local model = gp.nn.Sequential { gp.nn.Linear(3, 2), gp.nn.Linear(2, 2) }
      local pipe <close> = gp.pipeline(model, { loss = gp.nn.MSELoss() })
      local x, y = gp.ones { 4, 3 }, gp.ones { 4, 2 }
      pipe:step(x, y)
      print(select(2, pcall(pipe.step, pipe, x * (1 + gp.rank()), y)))
      print(pipe:step(x, y) > 0)]])
    local _, count = out:gsub("rank 1 was given another batch than rank 0", "")
    assert.equal(2, count)
    assert.truthy(out:find("[1] true", 1, true))
  end)

  -- Both shapes have been planned before, so no plan is compared any more.
  local function strays(calls)
    local out, _, code = run(2, [[
      local model = gp.nn.Sequential { gp.nn.Linear(3, 2), gp.nn.Linear(2, 2) }
      local pipe <close> = gp.pipeline(model, { loss = gp.nn.MSELoss() })
      local function batch(rows) return gp.ones { rows, 3 }, gp.ones { rows, 2 } end
      pipe:step(batch(4)) pipe:step(batch(5)) pipe:evaluate(batch(4))
      local r = gp.rank()
      print(select(2, pcall(function() ]] .. calls .. [[ end)))]])
    assert.equal(0, code)
    return out
  end

  it("a rank that waits in a step hears that another one is elsewhere", function()
    local out = strays "if r == 0 then pipe:step(batch(4)) else gp.barrier() end"
    local _, count = out:gsub("rank 0 is in 'pipe:step' at [^ ]*, rank 1 in 'gp.barrier' at ", "")
    assert.equal(2, count)
    out = strays "pipe:step(batch(r == 0 and 4 or 6))"
    _, count = out:gsub("%(step of 4 rows%), rank 1 in 'pipe:step' at [^ ]* %(plan for new shapes%)",
      "")
    assert.equal(2, count)
  end)

  -- Results of calls, the same on both ranks: true, or the error.
  local function tries(text)
    local out = run(2, [[
      local nn = gp.nn
      local model = nn.Sequential { nn.Linear(4, 8), nn.Linear(8, 2) }
      local x, y, r = gp.ones { 8, 4 }, gp.ones { 8, 2 }, gp.rank()
      local function open(loss)
        return gp.pipeline(model, { chunks = 2, loss = loss or nn.MSELoss() })
      end
      local results = {}
      local function try(f, ...)
        local good, message = pcall(f, ...)
        results[#results + 1] = good and "true" or message:gsub("^[^ ]*: ", "", 1)
      end
    ]] .. text .. " io.write(table.concat(results, '\\n'), '\\n')")
    local lists = { {}, {} }
    for line in out:gmatch "[^\n]+" do
      local list = lists[line:find "^%[1%] " and 2 or 1]
      list[#list + 1] = line:gsub("^%[1%] ", "")
    end
    assert.same(lists[1], lists[2])
    return lists[1]
  end

  it("ranks that have parted go on with a new pipeline, and with the same one if it has not run",
    function()
      for alone = 0, 1 do
        local list = tries(([[
          local pipe = open()
          try(r == %d and pipe.step or gp.barrier, r == %d and pipe or nil, x, y)
          try(gp.barrier)
          try(pipe.step, pipe, x, y)
          pipe:close()
          pipe = open()
          try(pipe.step, pipe, x, y)]]):format(alone, alone))
        assert.matches("expected the same calls", list[1])
        assert.same({ "true", "true", "true" }, { table.unpack(list, 2) })
      end
    end)

  it("loading a state is a call of all ranks, with the same values", function()
    local list = tries [[
      local pipe = open()
      local opt = gp.optim.Adam(pipe:parameters(), { lr = 0.1 })
      pipe:step(x, y)
      opt:step()
      local state, moments = pipe:state_dict(), opt:state_dict()
      local function without(load) return r == 1 and load or gp.barrier end
      try(without(pipe.load_state_dict), r == 1 and pipe or nil, state)
      try(without(opt.load_state_dict), r == 1 and opt or nil, moments)
      try(without(model.load_state_dict), r == 1 and model or nil, state)
      local other = {}
      for name, value in pairs(state) do other[name] = value * (1 + r) end
      try(pipe.load_state_dict, pipe, other)
      try(pipe.load_state_dict, pipe, r == 1 and {} or state)
      try(pipe.load_state_dict, pipe, state)
      try(opt.load_state_dict, opt, moments)
      try(pipe.step, pipe, x, y)]]
    for i = 1, 3 do assert.matches("expected the same calls", list[i]) end
    assert.matches("load_state_dict: the ranks differ: rank 0 has [%w.]+: f32", list[4])
    assert.matches("rank 1: .*the state does not fit the model", list[5])
    assert.same({ "true", "true", "true" }, { list[#list - 2], list[#list - 1], list[#list] })
  end)

  it("saving takes the same folder and optimizer on all ranks", function()
    local list = tries [[
      local pipe = open()
      local opt = gp.optim.Adam(pipe:parameters(), { lr = 0.1 })
      local folder = gp.broadcast(r == 0 and os.tmpname() or "", 0)
      if r == 0 then os.remove(folder) end
      try(gp.checkpoint.save, folder .. r, { pipe = pipe, opt = opt })
      try(gp.checkpoint.save, folder, { pipe = pipe, opt = r == 0 and opt or nil })
      try(gp.checkpoint.save, folder, { pipe = pipe, opt = opt })
      gp.barrier()
      if r == 0 then os.execute("rm -r " .. folder) end]]
    assert.matches("the ranks differ: rank 0 has folder: ", list[1])
    assert.matches("the ranks differ: rank 0 has opt: given, rank 1 has opt: none", list[2])
    assert.equal("true", list[3])
  end)

  it("a pipeline whose run one rank has left is lost on all of them", function()
    local list = tries [[
      local pipe = open()
      try(pipe.step, pipe, x, y)
      if r == 1 then try(pipe.step, pipe, x, y) else try(gp.barrier) end
      try(gp.barrier)
      try(pipe.step, pipe, x, y)
      pipe:close()
      pipe = open()
      try(pipe.step, pipe, x, y)]]
    assert.matches("expected the same calls", list[2])
    assert.matches("the pipeline is lost: rank 0 is in 'gp.barrier'", list[4])
    assert.same({ "true", "true", "true" }, { list[1], list[3], list[5] })
  end)

  it("a loss or a layer that raises on one rank raises on all, and the pipeline goes on", function()
    local list = tries [[
      local bad = r == 1
      local pipe = open(function(a, b)
        if bad then error "not this one" end
        return (a - b):square():mean()
      end)
      for _ = 1, 2 do
        try(pipe.step, pipe, x, y)
        bad = false
      end]]
    assert.matches("^plan for new shapes: rank 1: .*not this one", list[1])
    assert.equal("true", list[2])
  end)

  it("ranks in two different runs hear of it by heartbeats", function()
    local out = strays "pipe:step(batch(4 + r))"
    local _, count = out:gsub("%(step of 4 rows%), rank 1 in 'pipe:step' at [^ ]* %(step of 5 rows%)",
      "")
    assert.equal(2, count)
    out = strays "if r == 0 then pipe:step(batch(4)) else pipe:evaluate(batch(4)) end"
    _, count = out:gsub("rank 0 is in 'pipe:step' at [^ ]*, rank 1 in 'pipe:evaluate' at ", "")
    assert.equal(2, count)
  end)

  it("state_dict has all parameters, and reading one of another rank says where it is", function()
    local out = run(2, [[
      local model = gp.nn.Sequential { gp.nn.Linear(3, 2), gp.nn.Linear(2, 2) }
      local pipe <close> = gp.pipeline(model, {})
      local names = {}
      for name, value in pairs(model:state_dict()) do names[#names + 1] = name .. #value.shape end
      table.sort(names)
      print(table.concat(names, " "))
      print(select(2, pcall(function() return pipe:parameters()[3].value end)))]])
    assert.truthy(out:find("1.bias1 1.weight2 2.bias1 2.weight2", 1, true))
    assert.truthy(out:find("its value is on rank 1", 1, true))
    assert.truthy(out:find("pipe:state_dict()", 1, true))
  end)
end)
