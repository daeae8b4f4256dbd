-- examples/experiments/tables/memory.lua - how much memory published runs need: planned to the byte
-- at their full size, and the plan compared with a smaller run that is measured.
local gp = require "gpipe"
local report = require "report"

local memory = {}

local GIB = 1 << 30

-- Counts the elements of the parameters; `param` gives a shape without drawing values.
local function elements(model)
  local sum = 0
  for _, p in ipairs(model:parameters()) do sum = sum + p.param:numel() end
  return sum
end

local function total(list)
  local sum = 0
  for _, bytes in ipairs(list) do sum = sum + bytes end
  return sum
end

local function options(case, row, batch)
  local x, y = case.batch(batch)
  return {
    balance = row.balance, chunks = math.min(batch, row.chunks or batch), schedule = "gpipe",
    checkpoint = row.checkpoint or "except_last", loss = case.loss(), sample = { x, y },
    deferred_batch_norm = true,
  }
end

-- Plans the published size, for devices with memory of their own; nothing runs.
local function plan(case, row)
  local o, own = options(case, row, case.size), {}
  for d = 1, #row.balance do own[d] = { own = true } end
  o.devices = own
  local model = case.model(row)
  local parameters, peaks = elements(model), {}
  for _, schedule in ipairs { "gpipe", "1f1b" } do
    o.schedule = schedule
    peaks[schedule] = total(gp.dry_run(model, o):bytes()) / GIB
  end
  return {
    run = row.run, what = case.what(row), devices = #row.balance, parameters = parameters / 1e6,
    model = parameters * case.bytes / GIB, peak = peaks.gpipe, peak_1f1b = peaks["1f1b"],
    published_model = row.model, published_peak = row.peak, huang = row.huang,
  }
end

-- Runs the case with fewer channels and samples; returns what was planned and what the devices
-- held.
local function check(case, row, scale)
  local small = scale.shrink(row)
  local o = options(case, small, scale.batch)
  o.devices = #row.balance
  local planned = total(gp.dry_run(case.model(small), o):bytes())
  local devices = {}
  for d = 1, #row.balance do devices[d] = "cpu:" .. d - 1 end
  o.devices = devices
  local pipe <close> = gp.pipeline(case.model(small), o)
  pipe:step(table.unpack(o.sample))
  return planned / GIB, total(pipe.stats.peak_bytes) / GIB
end

local COLUMNS = {
  { "run", key = "run", left = true }, { "size", key = "what", left = true },
  { "devices", key = "devices", format = "%d" },
  { "parameters, M", key = "parameters", format = "%.1f" },
  { "published model", key = "published_model", format = "%.2f" },
  { "published peak", key = "published_peak", format = "%.2f" },
  { "GPipe's peak", key = "huang", format = "%.2f" },
  { "planned model", key = "model", format = "%.2f" },
  { "planned peak", key = "peak", format = "%.2f" },
  { "with 1f1b", key = "peak_1f1b", format = "%.2f" },
  { "small: planned", key = "small_planned", format = "%.4f" },
  { "small: measured", key = "small_measured", format = "%.4f" },
}

--- Plan the rows of a published table, measure smaller ones, and print them beside it, in GiB.
---@param case table title, rows, model(row), batch(n), loss(), what(row): size in words, size:
---  of the batch, bytes: of a parameter, whole: the peak counts the model, peak, about: in words
---@param scale {shrink: function, batch: integer, rows: integer?} of the runs that are measured
function memory.run(case, scale)
  local rows = {}
  for i = 1, math.min(#case.rows, scale.rows or #case.rows) do
    local row = case.rows[i]
    report.say("%s, %s: planning", case.title, row.run)
    rows[i] = plan(case, row)
    report.say("%s, %s: a smaller run", case.title, row.run)
    rows[i].small_planned, rows[i].small_measured = check(case, row, scale)
    if case.whole then
      rows[i].peak, rows[i].peak_1f1b = rows[i].peak + rows[i].model,
        rows[i].peak_1f1b + rows[i].model
    end
  end
  report.print(case.title .. ": GiB over all devices", COLUMNS, rows)
  print(("model: %d bytes a parameter. peak: %s."):format(case.bytes, case.peak))
  print(("planned: exact, at the published size; not run. small: %s."):format(case.about))
  print "measured: what the CPU devices held at most in a step beside parameters and gradients"
  return rows
end

return memory
