-- tests/spec/ranks/looking_spec.lua - what pipelines over ranks did: every rank is told of all
-- devices, on one clock.

local child = dofile "tests/child.lua"
local jobs = dofile "tests/support/jobs.lua"

local TRAIN = [[
local gp = require "gpipe"
gp.seed(1)
local model = gp.nn.Sequential {
  gp.nn.Linear(32, 64), gp.nn.Tanh(), gp.nn.Linear(64, 64), gp.nn.Tanh(), gp.nn.Linear(64, 4),
}
local pipe <close> = gp.pipeline(model, {
  devices = 2, chunks = 4, loss = gp.nn.CrossEntropyLoss(), watchdog = 4,
})
pipe:use(gp.optim.SGD(pipe:parameters(), { lr = 0.1 }))
local x, y = gp.randn { 32, 32 }, gp.randint(0, 4, { 32 })
-- the same on all ranks
local function same(text)
  local all = gp.all_gather(text)
  for r = 2, #all do assert(all[r] == all[1], "rank " .. r - 1 .. " has " .. all[r]) end
end
]]

local function run(text, opts)
  local script = child.file(TRAIN .. text)
  local words = { "--ranks", tostring(opts and opts.ranks or 2), script }
  for _, word in ipairs(opts or {}) do words[#words + 1] = word end
  local out, err, code = child.run(words, { environment = opts and opts.environment })
  os.remove(script)
  return out, err, code
end

local function has(text, part) assert.truthy(text:find(part, 1, true), text) end

describe("pipe:timeline over ranks", function()
  it("has the events of all devices, the same on every rank", function()
    local out, err = run [[
      pipe:step(x, y) pipe:step(x, y)
      local t = pipe:timeline()
      local words = { t.makespan }
      for d = 1, 2 do
        for _, e in ipairs(t[d]) do
          local name = e.stage .. e.op .. (e.micro or "")
          words[#words + 1] = ("%s %.9f %.9f"):format(name, e.begin, e.finish)
        end
      end
      same(table.concat(words, "\n"))
      print(#t[1] > 8, #t[2] > 8, t.names[2], t.clock_error)]]
    assert.equal("", err)
    assert.equal("true\ttrue\t1/cpu:1\t0\n", out)
  end)

  it("puts effects behind their causes, because one host has one clock", function()
    local out, err = run [[
      for _ = 1, 3 do pipe:step(x, y) end
      local t, at = pipe:timeline(), {}
      for d = 1, 2 do
        for _, e in ipairs(t[d]) do at[e.stage .. e.op .. (e.micro or "")] = e end
      end
      for i = 0, 3 do
        -- an action begins when its value is there; the maker's event ends after publishing it
        assert(at["1F" .. i].begin >= at["0F" .. i].begin)
        local backward = at["0B" .. i] or at["0I" .. i] or at["0W" .. i]
        assert(backward.begin >= at["1F" .. i].finish)
      end
      print "ordered"]]
    assert.equal("", err)
    assert.equal("ordered\n", out)
  end)

  it("measures what it takes for granted: the clocks of one host do not differ", function()
    local out, err = run [[
      local clocks = require("gpipe.ranks.clock").of_ranks()
      local own = clocks[2]
      same(("%.17g %.17g"):format(own.measured, own.round_trip))
      print(own.offset, own.error, math.abs(own.measured) <= own.round_trip / 2,
        own.round_trip > 0 and own.round_trip < 1)]]
    assert.equal("", err)
    assert.equal("0\t0\ttrue\ttrue\n", out)
  end)

  it("aligns a rank whose clock is a thousand seconds ahead, and says how well", function()
    -- a namespace of its own for the clock needs root
    local unshare = "unshare -T --monotonic 1000 --fork "
    if select(3, child.shell(unshare .. "true")) ~= 0 then pending "no time namespaces" return end
    local script, folder = child.file(TRAIN .. [[
      for _ = 1, 3 do pipe:step(x, y) end
      local own = require("gpipe.ranks.clock").of_ranks()[2]
      assert(math.abs(own.offset - 1000) <= own.error and own.error < 0.1)
      local t, at = pipe:timeline(), {}
      for d = 1, 2 do
        for _, e in ipairs(t[d]) do at[e.stage .. e.op .. (e.micro or "")] = e end
      end
      assert(t.makespan < 60 and t.clock_error > 0 and t.clock_error < 0.1)
      for i = 0, 3 do
        assert(at["1F" .. i].begin >= at["0F" .. i].begin - 2 * t.clock_error)
      end
      same(t.name)
      print(t.name)]]), os.tmpname()
    os.remove(folder)
    local words = { "mkdir -m 700", folder, "; export WORLD_SIZE=2 GPIPE_RANKS_KEY=k",
      "GPIPE_RANKS_FOLDER=" .. folder, ";", "RANK=1", unshare, child.quote(child.program), script,
      "& RANK=0", child.quote(child.program), script, "; wait $!; rm -rf", folder }
    local out, err = child.shell(table.concat(words, " "))
    os.remove(script)
    assert.equal("", err)
    assert.truthy(out:find("1f1b %(measured, clocks to within %d+ us%)\n"), out)
  end)

  it("is drawn once, by rank 0, with all devices", function()
    local path = os.tmpname()
    os.remove(path)
    local out, err = run([[
      pipe:step(x, y)
      print(pipe:svg(arg[1]))
      print(select(3, pipe:svg "/nowhere/here/x.svg"))
      local text = pipe:draw { width = 100 }
      same(text)
      assert(text:find("0/cpu:0", 1, true) and text:find("1/cpu:1", 1, true), text)]], { path })
    assert.equal("", err)
    assert.equal("true\nio\n", out)
    local file <close> = assert(io.open(path))
    local text = file:read "a"
    has(text, "0/cpu:0")
    has(text, "1/cpu:1")
    has(text, "1F3")
    os.remove(path)
  end)

  it("gives costs of all stages, of the last training pass", function()
    local out, err = run [[
      pipe:step(x, y)
      pipe:evaluate(x, y)
      local costs = pipe:costs()
      same(tostring(costs))
      print(costs.F[1] > 0 and costs.F[2] > 0 and costs.B[2] > 0)]]
    assert.equal("", err)
    assert.equal("true\n", out)
  end)

  it("asked on one rank only is an error that names both calls", function()
    local _, err = run [[
      pipe:step(x, y)
      if gp.rank() == 0 then pipe:timeline() else gp.barrier() end]]
    assert.truthy(err:match "rank 0 is in 'pipe:timeline' at [^ ]*, rank 1 in 'gp.barrier' at ", err)
  end)
end)

-- The last answer was dropped if the thread of the messages had not sent it before the measuring
-- ended. Over MPI no other thread sends.
describe("the way between two ranks", function()
  for _, way in ipairs { "unix", "tcp", "mpi" } do
    it("is measured again and again, without the loss of an answer, over " .. way, function()
      local missing = jobs.missing(way)
      if missing then return pending(missing) end
      local out, err = jobs.script(way, 2, [=[
        local core = require "gpipe.core"
        require "gpipe".barrier()
        for _ = 1, 50 do core.rank_probe(0, 1, 8, 1, 1) end
        print "measured"]=], { GPIPE_WATCHDOG = "10" })
      assert.equal("measured\n", out, err)
    end)
  end
end)

describe("pipe.stats over ranks", function()
  it("has what each device did, which comes with the end of a step", function()
    local out, err = run [[
      pipe:step(x, y)
      local s = pipe.stats
      local words = {}
      for d = 1, 2 do
        assert(s.busy[d] > 0 and s.bubble[d] < 1 and s.peak_bytes[d] > 0 and s.peak_live[d] > 0)
        words[d] = ("%.17g %d"):format(s.busy[d], s.peak_bytes[d])
      end
      same(table.concat(words, " "))
      print "all"]]
    assert.equal("", err)
    assert.equal("all\n", out)
  end)
end)

describe("pipe:profile over ranks", function()
  it("has the rows of all devices on every rank", function()
    local out, err = run [[
      pipe:step(x, y)
      local p = pipe:profile(x, y, { ceilings = false })
      same(tostring(p))
      local seen = {}
      for _, row in ipairs(p.rows) do seen[row.device] = (seen[row.device] or 0) + row.seconds end
      print(seen["0/cpu:0"] > 0, seen["1/cpu:1"] > 0, #p.devices, p.devices[2].name)]]
    assert.equal("", err)
    assert.equal("true\ttrue\t2\t1/cpu:1\n", out)
  end)

  it("tells all ranks what failed on one", function()
    local out = run [[
      local good, message = pcall(pipe.profile, pipe, function()
        if gp.rank() == 1 then error "not here" end
      end)
      print(good, message)]]
    has(out, "false")
  end)
end)

describe("pipe:memory over ranks", function()
  it("has the bytes of all devices, planned as measured, on every rank", function()
    local out, err = run [[
      pipe:step(x, y)
      local m = pipe:memory()
      same(tostring(m))
      for d = 1, 2 do assert(m[d].planned == m[d].measured and m[d].measured > 0) end
      print(m[1].name, m[2].name)
      assert(m[2].areas.parameters >= 4 * (64 * 64 + 64 + 64 * 4 + 4))
      same(m:draw { width = 72, height = 5, colour = false })
      assert(#m:alive("1/cpu:1", "1F2") > 0)]]
    assert.equal("", err)
    assert.equal("0/cpu:0\t1/cpu:1\n", out)
  end)

  it("is in memory.json of a run", function()
    local path = os.tmpname()
    os.remove(path)
    local _, err = run([[
      local run <close> = gp.run("r", { dir = arg[1], pipe = pipe, steps = 3, quiet = true })
      for step in run:steps() do run:log(step, { loss = pipe:step(x, y) }) end
      run:finish()]], { path })
    assert.equal("", err)
    local held = assert(require("gpipe.io.json").read(path .. "/r/memory.json"))
    assert.equal(2, #held)
    assert.equal("1/cpu:1", held[2].device)
    assert.equal(4 * (64 * 64 + 64 + 64 * 4 + 4), held[2].parts.model)
    assert.is_true(held[1].measured > 0 and held[2].measured > 0)
    local file <close> = assert(io.open(path .. "/r/timeline.svg"))
    has(file:read "a", "1F3")
    child.shell("rm -rf " .. child.quote(path))
  end)
end)

describe("a post-mortem over ranks", function()
  it("is one text with what each device did, by its own rank", function()
    local out, err = run([[
      pcall(pipe.step, pipe, x, y)
      same(pipe:post_mortem())
      print(pipe:post_mortem())]],
      { environment = { GPIPE_FAULT = "device=1,step=0,op=F,micro=1,action=hang" } })
    has(out, "  rank 1, device 1 (cpu:1): in 1F1")
    has(out, "  rank 0, device 0 (cpu:0): waiting")
    assert.falsy(out:find("on another rank", 1, true))
    has(err, "  rank 1, device 1 (cpu:1): in 1F1")
  end)

  it("of texts keeps the lines of the rank that drives a device", function()
    local merge = require("gpipe.ranks.post_mortem").merge
    assert.equal("head\n  rank 0, device 0 (a): in 0F0\n  rank 1, device 1 (b): done\n  first x\n",
      merge { "head\n  device 0 (a): in 0F0\n  device 1 (b): on another rank\n  first x\n",
        "other\n  device 0 (a): on another rank\n  device 1 (b): done\n  first x\n" })
    assert.equal("head\n  device 0 (a): on another rank\n",
      merge { "", "head\n  device 0 (a): on another rank\n" })
    assert.equal("", merge { "", "" })
  end)
end)
