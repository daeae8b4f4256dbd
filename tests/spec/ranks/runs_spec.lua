-- tests/spec/ranks/runs_spec.lua - checkpoints and training runs of several ranks: one folder,
-- which any number of ranks resumes from with the same bits.

local child = dofile "tests/child.lua"

local STEPS = 24

local QUICKSTART = {
  "examples/quickstart.lua", "--steps", tostring(STEPS), "--width", "16", "--layers", "2",
  "--context", "16", "--batch", "16", "--quiet", "--length", "4", "--data", "README.md",
}

local function folder()
  local path = os.tmpname()
  os.remove(path)
  return path
end

-- Trains in a folder with so many ranks.
local function train(ranks, path, environment)
  local words = ranks > 1 and { "--ranks", tostring(ranks) } or {}
  table.move(QUICKSTART, 1, #QUICKSTART, #words + 1, words)
  words[#words + 1] = "--run-dir"
  words[#words + 1] = path
  return child.run(words, { environment = environment })
end

local function bytes_of(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

local function check_same(a, b)
  for stage = 0, 1 do
    local name = ("/checkpoints/step-%08d/stage-%d.safetensors"):format(STEPS, stage)
    assert.truthy(bytes_of(a .. name) == bytes_of(b .. name), name)
  end
end

local function remove(...)
  for _, path in ipairs { ... } do child.shell("rm -rf " .. child.quote(path)) end
end

describe("examples/quickstart.lua", function()
  local whole = folder()
  local said = train(1, whole)

  it("runs unchanged on two ranks, with the same bytes in its checkpoint", function()
    local path = folder()
    local out, err, code = train(2, path)
    assert.equal("", err)
    assert.equal(0, code)
    assert.equal(said:match "validation loss [%d.]+", out:match "validation loss [%d.]+")
    check_same(whole, path)
    remove(path)
  end)

  it("stops on all ranks after the same step and goes on with another number of them", function()
    local path = folder()
    -- an error in a step ends the process like a crash: the last checkpoint is that of step 10
    local script = child.file(([[
      local gp = require "gpipe"
      local run = gp.run
      rawset(gp, "run", function(name, opts)
        opts.every, opts.background = 10, false
        return run(name, opts)
      end)
      arg[0] = %q
      dofile(arg[0])]]):format(QUICKSTART[1]))
    local words = { "--ranks", "2", script }
    table.move(QUICKSTART, 2, #QUICKSTART, #words + 1, words)
    words[#words + 1] = "--run-dir"
    words[#words + 1] = path
    local _, err, code = child.run(words, { environment = {
      GPIPE_FAULT = "device=1,step=14,op=B,micro=2,action=fail" } })
    os.remove(script)
    assert.truthy(err:find("rank 1: GPIPE_FAULT asked for this failure", 1, true), err)
    assert.equal(1, code)
    _, err, code = train(3, path)
    assert.equal("", err)
    assert.equal(0, code)
    check_same(whole, path)
    remove(path)
  end)

  it("ends with code 75 on all ranks at a signal, and resumes in one process", function()
    local path = folder()
    local words = { child.quote(child.program), "--ranks 2" }
    for _, word in ipairs(QUICKSTART) do words[#words + 1] = child.quote(word) end
    words[#words + 1] = "--run-dir " .. child.quote(path)
    -- the signal may come before the first step or after the last: then there is nothing to resume
    local _, err, code = child.shell(table.concat(words, " ")
      .. " & for i in $(seq 100); do sleep 0.05; [ -s " .. path .. "/log.jsonl ] && break; done; "
      .. "kill -TERM $!; wait $!")
    assert.truthy(code == 75 or code == 0, err)
    if code == 75 then assert.truthy(err:find("stopped after step", 1, true), err) end
    assert.equal(0, (select(3, train(1, path))))
    check_same(whole, path)
    remove(path, whole)
  end)
end)

describe("gp.checkpoint", function()
  it("is written by all ranks side by side, and any number of ranks loads it", function()
    local path = folder()
    local text = ([[
      local gp = require "gpipe"
      local nn = gp.nn
      local function make()
        gp.seed(2)
        local model = nn.Sequential { nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 2) }
        local pipe = gp.pipeline(model, { devices = 2, chunks = 2, loss = nn.MSELoss() })
        local opt = gp.optim.AdamW(pipe:parameters(), { lr = 0.1 })
        pipe:use(opt)
        return pipe, opt
      end
      local x, y = gp.ones { 8, 4 }, gp.ones { 8, 2 }
      local pipe, opt = make()
      if arg[1] == "save" then
        for _ = 1, 3 do pipe:step(x, y) end
        assert(gp.checkpoint.save(%q, { pipe = pipe, opt = opt, extra = { 5 } }))
      else
        assert(gp.checkpoint.load(%q, { pipe = pipe, opt = opt })[1] == 5)
      end
      print(("%%.17g %%.17g"):format(pipe:step(x, y), pipe:step(x, y)))
      pipe:close()]]):format(path, path)
    local script = child.file(text)
    local saved = child.run { "--ranks", "2", script, "save" }
    assert.truthy(#saved > 10)
    for _, words in ipairs { { script, "load" }, { "--ranks", "2", script, "load" },
      { "--ranks", "3", script, "load" } } do
      assert.equal(saved, (child.run(words)))
    end
    os.remove(script)
    remove(path)
  end)

  -- Two ranks with 64 MB each; arg[1] says what to do, arg[2] is the folder.
  local LARGE = [[
    local gp = require "gpipe"
    gp.seed(2)
    local width = 2048
    local first, second = gp.nn.Linear(width, 2 * width), gp.nn.Linear(2 * width, width)
    local model = gp.nn.Sequential { first, second }
    local pipe <close> = gp.pipeline(model, { devices = 2, balance = { 1, 1 } })
    local function save(extra, background)
      return gp.checkpoint.save(arg[2], { pipe = pipe, extra = { extra }, background = background })
    end
    if arg[1] == "load" then
      print(gp.checkpoint.load(arg[2], { pipe = pipe })[1])
    elseif arg[1] == "peak" then
      collectgarbage()
      local before = gp.memory().cpu.live
      assert(gp.checkpoint.load(arg[2], { pipe = pipe }))
      local peak, sum = gp.memory().cpu.peak - before, 0
      for _, t in pairs(pipe:state_dict()) do sum = sum + t:sum():item() end
      print(("%.6g"):format(sum), peak)
    elseif arg[1] == "save" then
      print(save(1))
    elseif arg[1] == "background" then
      assert(save(1))
      local saving = assert(save(2, true))
      print(saving:finish())
      gp.barrier()
    elseif arg[1] == "die" then
      assert(save(1))
      local core, begun = require "gpipe.core", arg[2] .. ".begun"
      if gp.rank() == 1 then -- it is killed when it would write its file, and rank 0 waits for that
        core.checkpoint_save = function()
          while not io.open(begun) do core.sleep(0.01) end
          os.execute "kill -9 $PPID"
        end
      end
      local saving = assert(save(2, true))
      io.open(begun, "w"):close()
      print(saving:finish())
    end]]
  local script = child.file(LARGE)
  teardown(function() os.remove(script) end)

  it("has a file of each rank, and no marks of the writing", function()
    local path = folder()
    local out, err = child.run { "--ranks", "2", script, "save", path }
    assert.equal("", err)
    assert.equal("true\n", out)
    local names = require("gpipe.core").folder_names(path)
    table.sort(names)
    assert.same({ "MANIFEST.json", "stage-0.safetensors", "stage-1.safetensors" }, names)
    assert.equal("1\n", (child.run { script, "load", path }))
    remove(path)
  end)

  it("is read by each rank as far as it holds it", function()
    local path = folder()
    child.run { "--ranks", "2", script, "save", path }
    local sum, bytes = child.run({ "--ranks", "2", script, "peak", path }):match "^(%S+)\t(%d+)"
    local same, all = child.run({ script, "peak", path }):match "^(%S+)\t(%d+)"
    assert.equal(same, sum)
    assert.is_true(tonumber(bytes) < 0.6 * tonumber(all))
    remove(path)
  end)

  it("is written in the background by all ranks", function()
    local path = folder()
    local out, err = child.run { "--ranks", "2", script, "background", path }
    assert.equal("", err)
    assert.equal("true\n", out)
    assert.equal("2\n", (child.run { "--ranks", "2", script, "load", path }))
    remove(path)
  end)

  it("stays as it was when a rank is killed in the middle of a save", function()
    local path = folder()
    local out, err, code = child.run { "--ranks", "2", script, "die", path }
    assert.equal(137, code)
    assert.truthy(out:find "^nil\t.*stage%-1%.safetensors was not written: rank 1 %(process %d+%) is gone",
      out .. err)
    assert.truthy(err:find("rank 1 was ended by signal 9", 1, true), err)
    assert.equal("1\n", (child.run { script, "load", path }))
    remove(path, path .. ".begun")
  end)
end)
