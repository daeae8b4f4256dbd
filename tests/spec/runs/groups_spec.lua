-- tests/spec/runs/groups_spec.lua - runs grouped by their settings: in lists, curves, pages.

local browser = require "tests.support.browser"
local child = dofile "tests/child.lua"
local fails = require("tests.support.expect").failure
local gp = require "gpipe"
local groups = require "gpipe.run_reader.groups"
local run_folder = require "tests.support.run_folder"

local root
before_each(function() root = run_folder.root() end)
after_each(function() run_folder.remove(root) end)

-- Makes rates 0.03, 0.1 and 1e-3 with two seeds each; losses are constant: rate + seed. The best of
-- all runs is 0.25.
local function make_runs()
  for _, lr in ipairs { 0.03, 0.1, 1e-3 } do
    for seed = 1, 2 do
      run_folder.make(root, ("r%g-%d"):format(lr, seed), { step = 10 * seed, loss = lr + seed,
        config = ('"lr":%g,"seed":%d,"net":{"width":64}'):format(lr, seed),
        value = function() return lr + seed end })
    end
  end
  return gp.runs(root)
end

local function labels(list)
  local words = {}
  for i, group in ipairs(list) do words[i] = ("%s: %d"):format(group.label, #group.runs) end
  return words
end

describe("groups of runs", function()
  it("hold runs whose settings agree, in the order of the values", function()
    local runs = make_runs()
    assert.same({ "lr=0.001: 2", "lr=0.03: 2", "lr=0.1: 2" }, labels(groups.of(runs, "lr")))
    assert.same({ "seed=1 net.width=64: 3", "seed=2 net.width=64: 3" },
      labels(groups.of(runs, { "seed", "net.width" })))
    assert.same({ "lr", "seed" }, groups.keys(runs))
  end)

  it("may hold runs without settings, which do not count as different", function()
    make_runs()
    assert(os.execute(("mkdir '%s/bare' && cp '%s/r0.1-1/log.jsonl' '%s/bare'")
      :format(root, root, root)))
    local runs = gp.runs(root)
    assert.same({ "lr", "seed" }, groups.keys(runs))
    local list = labels(groups.of(runs, "lr"))
    assert.same({ 4, "lr=?: 1" }, { #list, list[4] })
  end)

  it("are refused where no run has such a setting", function()
    local runs = make_runs()
    local path = root .. "/out.svg"
    assert.matches("no run has the setting 'lrr'", fails(runs.plot, runs, "loss", { by = "lrr" }))
    assert.matches("setting 1 is 7, expected a string", fails(runs.plot, runs, "loss", { by = { 7 } }))
    assert.matches("by is empty", fails(runs.svg, runs, path, "loss", { by = {} }))
  end)
end)

describe("curves of groups", function()
  it("are means within a band, as far as any run goes", function()
    local curves = require "gpipe.run_reader.curves"
    local panel = curves.gather(make_runs(), { { "loss" } }, { most = 100, by = "lr" })[1]
    assert.equal(3, #panel.curves)
    local curve = panel.curves[2]
    assert.equal("lr=0.03 (2)", curve.label)
    assert.equal(20, #curve.x)
    assert.is_true(math.abs(curve.mean[5] - 1.53) < 1e-6) -- both runs
    assert.is_true(math.abs(curve.mean[15] - 2.03) < 1e-6) -- only the longer one
    assert.is_true(math.abs(curve.low[5] - 1.03) < 1e-6 and math.abs(curve.high[5] - 2.03) < 1e-6)
    assert.is_true(math.abs(curve.last - 1.53) < 1e-6)
  end)

  it("have one entry in the legend of a figure, which explains the dashes", function()
    local path = root .. "/out.svg"
    assert(make_runs():svg(path, "loss,val_loss", { by = "lr" }))
    local file <close> = assert(io.open(path, "rb"))
    local text = file:read "a"
    assert.equal(6, select(2, text:gsub('class="curve"', "")))
    assert.is_truthy(text:find(">lr=0.1 (2): 1.6, 3.2<", 1, true))
    assert.is_truthy(text:find(">val_loss</text>", 1, true))
  end)
end)

describe("--by", function()
  it("prints a line a group", function()
    make_runs()
    local out, err, code = child.run { "runs", root, "--by", "lr" }
    assert.same({ "", 0 }, { err, code })
    assert.matches("\nlr=0.03 +2 finished +1.53 %(1.03 to 2.03%) +val_loss 0.25\n", out)
    out, err, code = child.run { "runs", root, "--by", "rate" }
    assert.same({ "", 2 }, { out, code })
    assert.is_truthy(err:find("no run has the setting 'rate'", 1, true))
  end)

  it("draws a curve a group", function()
    make_runs()
    local out, err, code = child.run({ "plot", root, "--by=lr" },
      { environment = { LC_ALL = "C", COLUMNS = "70" } })
    assert.same({ "", 0 }, { err, code })
    assert.is_truthy(out:find("a = lr=0.001 (2)", 1, true))
    assert.same({ "", 2 }, { select(1, child.run { "plot", root, "--by=x" }),
      select(3, child.run { "plot", root, "--by=x" }) })
  end)
end)

it("the page of runs has a curve and a line per group when asked", function()
  if not browser.find() then return pending "no chromium" end
  local path = root .. "/page.html"
  assert(make_runs():html(path))
  local file = assert(io.open(path, "rb"))
  local text = file:read "a"
  file:close()
  file = assert(io.open(path, "wb"))
  file:write((text:gsub('by: "run"', 'by: "all but seed"', 1)))
  file:close()
  local document, complaints = browser.document("file://" .. path)
  assert.same({}, complaints)
  document = document:gsub("<script.->.-</script>", "")
  for _, words in ipairs { "lr=0.001 (2)", "<option value=\"lr\">lr</option>",
    "<td>lr=0.03</td><td>2</td><td>1.53 (1.03 to 2.03)</td>" } do
    assert.is_truthy(document:find(words, 1, true), words)
  end
  assert.is_true(document:find("lr=0.001 (2)", 1, true) < document:find("lr=0.03 (2)", 1, true))
end)
