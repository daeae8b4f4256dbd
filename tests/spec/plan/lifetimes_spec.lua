-- tests/spec/plan/lifetimes_spec.lua - nothing that a task leaves for later ones is held beyond its
-- last reader: the plan's own figures against a walk over pipe:lowered().

local gp = require "gpipe"
local nn = gp.nn

local SCHEDULES = {
  "looped_bfs", "zb_h1", "zb_h2", "zb_auto", "zbv", "v_half", "v_min", "interleaved_zero_bubble",
  "dualpipe", "dualpipev", "1f1b", "interleaved_1f1b", "chimera", "hoisted",
}
local POLICIES = { "never", "selective", "always" }
local MICROS = 4

-- Wide enough that all values are multiples of the 64 bytes that values are aligned to.
local function blocks()
  local list = {}
  for i = 1, 8 do
    list[i] = nn.Sequential { nn.LayerNorm(32), nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32) }
  end
  return nn.Sequential(list)
end

local function activated()
  local list = {}
  for i = 1, 8 do
    list[2 * i - 1], list[2 * i] = nn.Linear(32, 32), i % 2 == 0 and nn.ReLU() or nn.SiLU()
  end
  return nn.Sequential(list)
end

local function gpt()
  return gp.models.gpt2 { layers = 6, width = 32, heads = 2, context = 16, vocabulary = 64 }
end

local function images()
  local list = { nn.Conv2d(3, 8, 3, { padding = 1 }) }
  for i = 1, 7 do
    list[i + 1] = nn.Sequential { nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, { padding = 1 }) }
  end
  list[9] = nn.Sequential { nn.Flatten(), nn.Linear(8 * 16, 8) }
  return nn.Sequential(list)
end

local ROWS = 16 * MICROS
local ids, labels = gp.zeros({ ROWS, 16 }, { dtype = "i64" }), gp.zeros({ ROWS }, { dtype = "i64" })
local MODELS = {
  { "blocks with norms", blocks, gp.zeros { ROWS, 32 }, labels },
  { "products with activations", activated, gp.zeros { ROWS, 32 }, labels },
  { "a GPT", gpt, ids, ids },
  { "convolutions", images, gp.zeros { ROWS, 3, 4, 4 }, labels },
}
local LACKS = { -- two copies of a stage have no running statistics
  convolutions = { dualpipe = true, dualpipev = false, chimera = true },
}

-- The lines of each device's page, without what they touch.
local function tasks_of(dry)
  local outer, pages = print, {}
  _G.print = function(line) -- luacheck: ignore 122
    if line:match "^tasks of device" then pages[#pages + 1] = {} end
    if line:match "^  %d+%u" and #pages > 0 then table.insert(pages[#pages], (line:match "%S+")) end
  end
  local ok, why = pcall(dry.lowered, dry, { tasks = true })
  _G.print = outer -- luacheck: ignore 122
  assert.is_true(ok, why)
  return pages
end

local function padded(bytes) return (bytes + 63) // 64 * 64 end

-- What a stage leaves, by the action that makes it and the one that reads it last: bytes.
local function left_of(dry)
  local left = {}
  for _, one in ipairs(dry.core:left(dry.core)) do
    local stage = left[one.stage] or {}
    left[one.stage] = stage
    stage[one.maker] = stage[one.maker] or {}
    local last = one.last == "B" and "W" or one.last -- W stands for both
    stage[one.maker][last] = (stage[one.maker][last] or 0) + padded(one.bytes)
  end
  return left
end

-- The tasks of each micro-batch of a stage in their order: of the action that comes last as which.
local function last_tasks(page)
  local last = {}
  for t, text in ipairs(page) do
    local stage, op, micro = text:match "^(%d+)([FRBIW])(%d+):$"
    if stage then
      local key = stage .. "." .. micro
      last[key] = last[key] or {}
      last[key][op] = t
      if op == "B" then last[key].I, last[key].W = t, t end
    end
  end
  return last
end

-- When a value dies that an action reads last. What R alone reads makes room for the temporaries
-- of the backward pass that directly follows.
local function end_of(page, last, key, reader)
  local at = last[key][reader]
  local follows = reader == "R" and page[at + 1] or ""
  local stage, micro = follows:match "^(%d+)[BI](%d+):$"
  return stage and stage .. "." .. micro == key and at + 1 or at
end

-- Bytes that a device has to hold during each task: of what F, R and I have left.
local function needed(page, left)
  local last, alive = last_tasks(page), {}
  for t = 1, #page do alive[t] = { F = 0, R = 0, I = 0 } end
  for t, text in ipairs(page) do
    local stage, op, micro = text:match "^(%d+)([FRI])(%d+):$"
    local made = stage and left[tonumber(stage)] and left[tonumber(stage)][op] or {}
    for reader, bytes in pairs(made) do
      for at = t, end_of(page, last, stage .. "." .. micro, reader) do
        alive[at][op] = alive[at][op] + bytes
      end
    end
  end
  return alive
end

-- All R run before the first backward pass.
gp.schedule.define("hoisted", function(p, m)
  local rows, placement = {}, {}
  for d = 0, p - 1 do
    local row = {}
    placement[d] = d
    for _, op in ipairs { "F", "R", "B" } do
      for micro = 0, m - 1 do row[#row + 1] = d .. op .. micro end
    end
    rows[d + 1] = table.concat(row, ",")
  end
  return { placement = placement, rows = rows }
end)

local function check(dry, what)
  local left, mixed = left_of(dry), 0
  for d, page in ipairs(tasks_of(dry)) do
    local planned, own = dry.core:alive(dry.core, d - 1), needed(page, left)
    assert.equal(#page, #planned, what)
    for t, text in ipairs(page) do
      local where = ("%s: device %d, %s"):format(what, d - 1, text)
      assert.equal(own[t].F, planned[t][1], where .. " saved")
      assert.equal(own[t].R, planned[t][2], where .. " recomputed")
      assert.equal(own[t].I, planned[t][3], where .. " carried")
    end
  end
  for _, makers in pairs(left) do
    for _, readers in pairs(makers) do
      if readers.I and readers.W then mixed = mixed + 1 end
    end
  end
  return mixed
end

describe("what tasks leave for later ones", function()
  for _, case in ipairs(MODELS) do
    it("is held until its last reader and no longer: " .. case[1], function()
      local mixed = 0
      for _, schedule in ipairs(SCHEDULES) do
        if not (LACKS[case[1]] and LACKS[case[1]][schedule]) then
          for _, policy in ipairs(POLICIES) do
            local dry = gp.dry_run(case[2](), {
              devices = 2, chunks = MICROS, schedule = schedule, checkpoint = policy,
              loss = nn.CrossEntropyLoss(), sample = { case[3], case[4] },
            })
            mixed = mixed + check(dry, schedule .. ", " .. policy)
          end
        end
      end
      assert.is_true(mixed > 0, "no stage leaves values for I alone beside others for W")
    end)
  end
end)
