-- tests/spec/ranks/copies_spec.lua - users' own schedules with two copies of every stage, over
-- ranks: which of them run, with the bits of one process, and which are refused before they begin.

local child = dofile "tests/child.lua"

-- Both copies of each stage in a replica; micro-batch q of m runs stage s on device
-- at[s + 1][pick(q, s, m)].
local SCRIPT = [[
local gp = require "gpipe"
local nn = gp.nn
local way, devices, replicas = arg[1], tonumber(arg[2]), tonumber(arg[3])

local WAYS = {
  -- one direction down, the other one up: both copies of the middle stage are on the middle device
  middle = { { { 0, 2 }, { 1, 1 }, { 2, 0 } }, function(q, _, m) return 2 * q // m + 1 end },
  -- two pipelines side by side
  aside = { { { 0, 1 }, { 2, 3 } }, function(q, _, m) return 2 * q // m + 1 end },
  -- both copies of each stage are on one device, which makes them one
  same = { { { 0, 0 }, { 1, 1 } }, function() return 1 end },
  -- one copy of stage 1 has all micro-batches, of both copies of stage 0
  one_sided = { { { 0, 1 }, { 2, 3 } }, function(q, s, m) return s == 0 and 2 * q // m + 1 or 1 end },
}
local at, pick = WAYS[way][1], WAYS[way][2]
gp.schedule.define("own", function(p, m)
  local rows, placement = gp.schedule.rows(p), {}
  for s, pair in ipairs(at) do placement[s - 1] = pair end
  for q = 0, m - 1 do
    for s = 0, #at - 1 do rows:F(at[s + 1][pick(q, s, m)], s, q) end
    for s = #at - 1, 0, -1 do rows:B(at[s + 1][pick(q, s, m)], s, q) end
  end
  return { placement = placement, rows = rows }
end)

gp.seed(1)
local layers = {}
for i = 1, #at do layers[i] = nn.Sequential { nn.Linear(8, 8), nn.LayerNorm(8), nn.Tanh() } end
local good, message = pcall(function()
  local pipe <close> = gp.pipeline(nn.Sequential(layers), { devices = devices, replicas = replicas,
    chunks = 4, schedule = way ~= "one" and "own" or nil, loss = nn.MSELoss(), watchdog = 10 })
  local opt = gp.optim.AdamW(pipe:parameters(), { lr = 0.01 })
  pipe:use(opt, { clip_norm = 0.5 })
  for step = 1, 3 do
    local x, y = gp.randn({ 16, 8 }, { seed = step }), gp.randn({ 16, 8 }, { seed = 9 + step })
    print(("%.17g"):format(pipe:step(x, y)))
  end
  local bits = {}
  for name, value in pairs(pipe:state_dict()) do bits[#bits + 1] = name .. value:bytes() end
  table.sort(bits)
  print(("%q"):format(table.concat(bits)))
end)
if not good then print(message) end]]

local script = child.file(SCRIPT)

local function run(ranks, ...)
  local words = ranks > 1 and { "--ranks", tostring(ranks), script } or { script }
  for _, word in ipairs { ... } do words[#words + 1] = tostring(word) end
  local out, err, code = child.run(words)
  assert.equal(0, code, err)
  return out
end

describe("a schedule of two copies", function()
  teardown(function() os.remove(script) end)

  for way, devices in pairs { aside = 4, same = 2 } do
    for _, replicas in ipairs { 1, 2 } do
      it(("has the bits of one process: %s, with %d replicas"):format(way, replicas), function()
        local whole = run(1, way, devices * replicas, replicas)
        assert.truthy(#whole > 400, whole)
        for _, ranks in ipairs { 2, 3 } do
          assert.equal(whole, run(ranks, way, devices * replicas, replicas))
        end
      end)
    end
  end

  for way, case in pairs {
    middle = { 3, "what stage 1 makes on device 1 goes to device 2 for micro-batch 0 and to device 0 for "
      .. "micro-batch 2, both for stage 2: expected one device for all of them" },
    one_sided = { 4, "what stage 1 makes on device 2 goes to device 0 for micro-batch 0 and to device 1 "
      .. "for micro-batch 2, both for stage 0: expected one device for all of them" },
  } do
    it("runs in one process, and is refused over ranks where a device would send to both: " .. way,
      function()
      local whole = run(1, way, case[1], 1)
      assert.truthy(#whole > 400, whole)
      for _, ranks in ipairs { 2, 3 } do
        local out = run(ranks, way, case[1], 1)
        assert.truthy(out:find(case[2], 1, true), out)
      end
    end)
  end
end)
