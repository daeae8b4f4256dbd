-- examples/experiments/tables/ablation.lua - what the parts of a pipeline are worth: U-Net (5, 64)
-- over four devices, as torchgpipe's timeline benchmark takes it apart.
--
-- The simulation can take two things away: skips that go straight from the stage that makes them to
-- the stage that uses them (torchgpipe's portals), and copies that overlap computation (its
-- streams). The order of work cannot be taken away, because devices run exactly what the schedule
-- lists. Handing skips from layer to layer as values changes nothing: the plan sees that a stage
-- only passes them on, and sends them past it. The table measures both forms.
local gp = require "gpipe"
local published = require "published"
local report = require "report"
local nn, optim = gp.nn, gp.optim

local ablation = {}

local BALANCE, BATCH, CHUNKS = { 34, 76, 70, 61 }, 128, 8
local P40 = { flops = 8e12, bandwidth = 346e9 } -- two thirds of its peak; NVIDIA's data sheet
local PCIE = 10e9 -- bytes per second that cross between two cards, of 15.8e9

-- ---- skips by hand ------------------------------------------------------------------------------

local Carry = nn.class "Carry" -- passes the skips under way around the layer
function Carry:init(body) self.body = body end
function Carry:forward(x, ...) return self.body(x), ... end

local Keep = nn.class "Keep"
function Keep.forward(_, x, ...) return x, x, ... end

local Join = nn.class "Join"
function Join.forward(_, x, skip, ...) return gp.concat({ x, skip }, 2), ... end

-- The same layers in the same places, but the skips go from layer to layer as extra values.
local function by_hand(model)
  local layers = {}
  for i = 1, #model do
    local kind = tostring(model[i]):match "^%a+"
    layers[i] = kind == "Stash" and Keep() or kind == "Pop" and Join() or Carry(model[i])
  end
  return nn.Sequential(layers)
end

-- ---- planning at full size ----------------------------------------------------------------------

local function images(batch, side) return gp.zeros { batch, 3, side, side } end
local function masks(batch, side) return gp.ones { batch, 1, side, side } end

local function plan(model)
  return gp.dry_run(model, {
    balance = BALANCE, devices = { { own = true }, { own = true }, { own = true }, { own = true } },
    chunks = CHUNKS, schedule = "gpipe", checkpoint = "except_last",
    loss = nn.BCEWithLogitsLoss(), sample = { images(BATCH, 192), masks(BATCH, 192) },
  })
end

-- The cuts that a value would cross if every stage handed it to its neighbour: pairs of direction
-- and stage before the cut (from 1), forward or back.
local function cuts(edge)
  local first, last = edge.from, edge.from
  for _, to in ipairs(edge.to) do first, last = math.min(first, to), math.max(last, to) end
  return edge.backward and "B" or "F", first + 1, last
end

-- Returns the seconds that copies take from each stage to the next, and their bytes. With
-- `through`, all values that cross a cut count, handed from neighbour to neighbour; without it only
-- the values between neighbours count, because a value that skips a stage arrives long before it is
-- needed.
local function crossing(dry, through)
  local delays, bytes = { F = { 0, 0, 0 }, B = { 0, 0, 0 } }, 0
  for _, edge in ipairs(dry:edges()) do
    local way, first, last = cuts(edge)
    for cut = first, last do
      if through or first == last then
        delays[way][cut] = delays[way][cut] + edge.bytes / PCIE
      end
    end
    bytes = bytes + edge.bytes * (through and last - first + 1 or 1)
  end
  return delays, bytes * CHUNKS / (1 << 30)
end

local function simulate(dry, comm, overlap)
  local schedule = gp.schedule.build("gpipe", { devices = #BALANCE, chunks = CHUNKS })
    :lower { checkpoint = "except_last" }
  local costs = dry:costs(P40)
  costs.comm, costs.overlap = comm, overlap
  return BATCH / schedule:simulate(costs).makespan
end

local function peak(dry)
  local sum = 0
  for _, bytes in ipairs(dry:bytes()) do sum = sum + bytes end
  return sum / (1 << 30)
end

-- ---- running it small ---------------------------------------------------------------------------

local function measure(make, scale)
  local devices = {}
  for d = 1, #BALANCE do devices[d] = "cpu:" .. d - 1 end
  local pipe <close> = gp.pipeline(make(), {
    balance = BALANCE, devices = devices, chunks = CHUNKS, schedule = "gpipe",
    checkpoint = "except_last", loss = nn.BCEWithLogitsLoss(),
  })
  pipe:use(optim.SGD(pipe:parameters(), { lr = 0.1 }))
  local x, y = images(scale.batch, scale.side), masks(scale.batch, scale.side)
  local best, loss = math.huge, nil
  for _ = 1, scale.steps do
    loss = pipe:step(x, y)
    best = math.min(best, pipe.stats.seconds)
  end
  return scale.batch / best, loss
end

local COLUMNS = {
  { "parts on (torchgpipe)", key = "run", left = true }, { "published/s", key = "rate" },
  { "x", key = "rate_x" }, { "GiB", key = "memory", format = "%.1f" },
  { "here", key = "here", left = true }, { "GiB over cuts", key = "crossing", format = "%.2f" },
  { "planned GiB", key = "peak", format = "%.2f" },
  { "simulated/s", key = "simulated" }, { "x", key = "simulated_x" },
  { "measured/s", key = "measured" },
}

--- @param scale {channels: integer, side: integer, batch: integer, steps: integer}
function ablation.run(scale)
  local rows = {}
  for i, row in ipairs(published.ablation) do
    rows[i] = { run = row.run, rate = row.rate, memory = row.memory }
  end
  local dry, there, past = plan(gp.models.unet()), {}, {}
  there.delays, there.bytes = crossing(dry, true)
  past.delays, past.bytes = crossing(dry, false)
  rows[1].here = "(no unordered form)"
  rows[2].here, rows[2].crossing = "skips by every stage", there.bytes
  rows[2].simulated = simulate(dry, there.delays, false)
  rows[3].here, rows[3].crossing = "+ copies beside", there.bytes
  rows[3].simulated = simulate(dry, there.delays, true)
  rows[4].here, rows[4].crossing, rows[4].peak = "+ skips past stages", past.bytes, peak(dry)
  rows[4].simulated = simulate(dry, past.delays, true)
  local function small() return gp.models.unet { channels = scale.channels } end
  local hand, loss_by_hand = measure(function() return by_hand(small()) end, scale)
  local stashed, loss = measure(small, scale)
  rows[4].measured = stashed
  for _, key in ipairs { "rate", "simulated" } do report.ratio(rows, key, key .. "_x") end
  report.print("U-Net (5, 64) over 4 devices, batch 128, 8 micro-batches: the parts", COLUMNS, rows)
  print "published: 4 x Tesla P40, cached memory of all devices (torchgpipe)."
  print "over cuts: what a step sends. planned: exact, full size, beside parameters and gradients."
  print "simulated: by the cost model of a P40 (8 TFLOP/s, 346 GB/s; 10 GB/s between cards)."
  print(("measured: %d channels, %d x %d, batch %d, on the cores that are here."):format(
    scale.channels, scale.side, scale.side, scale.batch))
  print(("skips as values from layer to layer: %.3f/s measured, %s."):format(hand,
    loss == loss_by_hand and "the same loss to the bit"
    or ("losses %.9g and %.9g"):format(loss_by_hand, loss)))
  return rows
end

return ablation
