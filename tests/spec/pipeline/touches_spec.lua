-- tests/spec/pipeline/touches_spec.lua - pipe:lowered() says what each task touches, and who waits
-- for whom.

local gp = require "gpipe"
local nn = gp.nn

-- The page of every device: lists of lines.
local function pages_of(pipe, opts)
  local outer, pages = print, {}
  _G.print = function(line) -- luacheck: ignore 122
    if line:match "^tasks of device" then pages[#pages + 1] = {} end
    if line:match "^  %d+%u" and #pages > 0 then table.insert(pages[#pages], (line:gsub("^  ", ""))) end
  end
  local ok, why = pcall(pipe.lowered, pipe, opts)
  _G.print = outer -- luacheck: ignore 122
  assert.is_true(ok, why)
  return pages
end

local function model() return nn.Sequential { nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4) } end

local function pipeline(opts)
  local all = { balance = { 2, 1 }, chunks = 2, loss = nn.MSELoss(), seed = 1,
    devices = { "cpu:0", "cpu:1" } }
  for key, value in pairs(opts) do all[key] = value end
  return gp.pipeline(model(), all)
end

local function step(pipe)
  pipe:step(gp.ones { 8, 4 }, gp.ones { 8, 4 })
  if pipe.flush then pipe:flush() end
end

describe("the page of a step", function()
  it("names what F holds of recomputed micro-batches apart from what others save", function()
    local layers = nn.Sequential {
      nn.Linear(4, 6), nn.LayerNorm(6), nn.Linear(6, 4), nn.GELU(), nn.Linear(4, 4), nn.LayerNorm(4),
      nn.Linear(4, 4), nn.Tanh(),
    }
    local pipe <close> = gp.pipeline(layers, {
      devices = 2, chunks = 2, loss = nn.MSELoss(), checkpoint = "except_last",
      schedule = "looped_bfs",
    })
    step(pipe)
    local slots = {} -- of each stage: which micro-batch F has filled them for
    for _, page in ipairs(pages_of(pipe)) do
      for _, line in ipairs(page) do
        local stage, op, micro = line:match "^(%d+)(%u)(%d+):"
        local reads, writes = line:match "reads ([^;]*)" or "", line:match "writes ([^;]*)" or ""
        for slot in (op == "F" and writes or ""):gmatch "%l+%[%d%]" do slots[stage .. slot] = micro end
        for slot in (op == "I" and reads or ""):gmatch "%l+%[%d%]" do
          local kind = slot:match "^%l+"
          if kind == "saved" or kind == "held" then
            assert.equal(micro, slots[stage .. slot], line)
          end
        end
      end
    end
    assert.truthy(next(slots))
  end)

  it("is one line per task", function()
    local pipe <close> = pipeline { checkpoint = "never", schedule = "1f1b" }
    pipe:use(gp.optim.Adam(pipe:parameters(), { lr = 1e-3 }), { clip_norm = 1 })
    step(pipe)
    local pages = pages_of(pipe)
    assert.are.same({
      "1P: reads weights; writes packed weights",
      "1F0: waits for e0[0] from 0F0; reads e0[0], packed weights, weights, saved[0], batch; "
        .. "writes saved[0], loss",
      "1B0: reads e0[0], saved[0], batch, weights; writes e1[0], saved[0], gradients",
      "1F1: waits for e0[1] from 0F1; reads e0[1], packed weights, weights, saved[0], batch; "
        .. "writes saved[0], loss",
      "1B1: reads e0[1], saved[0], batch, weights; adds to gradients; writes e1[1], saved[0]",
      "1NORM: reads gradients; writes norms",
      "1VOTE: reads norms; writes the vote on the update",
      "1CLIP: waits for the verdict on the update from 0DECIDE; reads the verdict on the update, "
        .. "gradients; writes gradients",
      "1U0: reads the verdict on the update, weights, gradients, moments; writes weights, moments",
    }, pages[2])
  end)

  it("shows recomputation, and what is carried from I to W", function()
    local pipe <close> = pipeline { checkpoint = "always", schedule = "zb_h1", chunks = 4 }
    step(pipe)
    local text = table.concat(pages_of(pipe)[2], "\n")
    -- all that R makes is read by I alone: the input of the stage's one product lies on an edge
    assert.matches("1R0: [^\n]*writes recomputed until I%[%d%]", text)
    assert.matches("1I0: [^\n]*reads recomputed until I%[%d%]", text)
    assert.not_matches("1W%d: [^\n]*recomputed", text)
    assert.matches("1I%d: [^\n]*writes e1%[%d%]", text)
    assert.matches("1W%d: [^\n]*gradients", text)
  end)

  it("shows versions of the weights", function()
    local pipe <close> = pipeline { schedule = "pipedream", chunks = 4 }
    pipe:use(gp.optim.SGD(pipe:parameters(), { lr = 1e-3 }))
    step(pipe)
    local text = table.concat(pages_of(pipe, { tasks = true })[1], "\n")
    assert.matches("0F1: [^\n]*weights@0", text)
    assert.matches("0U0: [^\n]*writes weights[^\n]*older weights", text)
  end)

  it("leaves no value that is waited for without a maker", function()
    for _, schedule in ipairs { "gpipe", "1f1b", "zb_h1", "dualpipe", "chimera", "pipedream_2bw" } do
      local pipe <close> = pipeline { schedule = schedule, chunks = 4 }
      pipe:use(gp.optim.SGD(pipe:parameters(), { lr = 1e-3 }))
      step(pipe)
      local made, waits = {}, 0
      local pages = pages_of(pipe, { tasks = true })
      for _, page in ipairs(pages) do
        for _, line in ipairs(page) do made[line:match "^[^:]+"] = true end
      end
      for _, page in ipairs(pages) do
        for _, line in ipairs(page) do
          for list in line:gmatch "waits for ([^;]+)" do
            for one in (list .. ", "):gmatch "(.-), " do
              waits = waits + 1
              assert.is_true(made[one:match "from (%S+)$"], schedule .. ": " .. line)
            end
          end
        end
      end
      assert.is_true(waits >= 8, schedule)
    end
  end)

  it("is left out of long steps, unless it is asked for", function()
    local pipe <close> = pipeline { chunks = 100 }
    pipe:step(gp.ones { 100, 4 }, gp.ones { 100, 4 })
    assert.equal(0, #pages_of(pipe, { tasks = false }))
    assert.equal(0, #pages_of(pipe))
    assert.equal(2, #pages_of(pipe, { tasks = true }))
    assert.has_error(function() pipe:lowered { task = true } end,
      "lowered: unknown option 'task' (did you mean 'tasks'?)")
  end)
end)
