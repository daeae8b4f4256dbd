-- lua/gpipe/pipeline/profile/init.lua - pipe:profile: the time of each instruction in a step, by
-- op.
--
-- The runtime times the instructions one by one. Here the times are added up to rows and compared
-- with the best rates of the devices. The ordinary step before shows what ops cost together, in
-- chains or in a replayed graph: the time of its actions minus the times of their instructions is
-- the time in gaps.

local errors = require "gpipe.errors"
local batch = require "gpipe.pipeline.batch"
local ceilings = require "gpipe.pipeline.profile.ceilings"
local options = require "gpipe.options"
local paths = require "gpipe.pipeline.paths"
local share = require "gpipe.ranks.share"
local stream = require "gpipe.pipeline.stream"
local text = require "gpipe.pipeline.profile.text"

local profile = {}

---@class gpipe.ProfileRow
---@field device string
---@field place integer the device's number in the pipeline, from 0
---@field phase string "forward" "backward" "recompute" "prepare" "count" "update" "check" "copy"
---@field op string an op, or work of the engine: "adamw", "norm", "zero", "copy", "fetch"
---@field dtype string? of the first operand; nil if bytes are moved unchanged
---@field path string? what does such work here: the path that pipe:describe names for attention and
--- products
---@field count integer
---@field seconds number
---@field each number seconds of one
---@field share number of all the time measured on the device
---@field bytes number
---@field flop number
---@field bandwidth number? bytes a second
---@field rate number? FLOP a second
---@field bandwidth_share number? of the device's copies
---@field rate_share number? of the device's products in that dtype

-- ---- adding up ----------------------------------------------------------------------------------

local BY = {
  op = function(e) return e.op end,
  layer = function(e) return e.what ~= "" and e.what or e.op end,
  action = function(e) return e.action and e.stage .. e.action or e.op end,
}

-- The paths of a device for each kind of work, "cuDNN", "cuBLASLt / own kernels".
local function paths_of(pipe, d)
  local found, seen = {}, {}
  for _, p in ipairs(paths.of(pipe, d)) do
    local key = p.kind .. p.path
    if not seen[key] then
      found[p.kind] = found[p.kind] and found[p.kind] .. " / " .. p.path or p.path
    end
    seen[key] = true
  end
  return found
end

local function kind_of(op)
  if op:find "attention" then return "attention" end
  if op:find "^conv" then return "convolution" end
  return (op:find "linear" or op:find "matmul") and "product" or nil
end

-- Add up the entries of a device that have the same phase, name and dtype.
local function rows_of(device, place, entries, name_of, known)
  local rows, found = {}, {}
  for _, e in ipairs(entries) do
    local name = name_of(e)
    local key = table.concat({ e.phase, name, e.dtype or "" }, "\0")
    local row = found[key]
    if not row then
      local kind = name == e.op and kind_of(name)
      row = { device = device, place = place, phase = e.phase, op = name, dtype = e.dtype,
        path = kind and known[kind] or nil, count = 0, seconds = 0, bytes = 0, flop = 0 }
      found[key], rows[#rows + 1] = row, row
    end
    row.count, row.seconds = row.count + 1, row.seconds + e.seconds
    row.bytes, row.flop = row.bytes + e.bytes, row.flop + e.flop
  end
  return rows
end

local function slower_first(a, b)
  if a.seconds ~= b.seconds then return a.seconds > b.seconds end
  return a.phase .. a.op .. (a.dtype or "") < b.phase .. b.op .. (b.dtype or "")
end

-- Set the rates, and their shares of the device's best rates.
local function set_rates(row, total, best)
  row.each = row.seconds / row.count
  row.share = total > 0 and row.seconds / total or 0
  if row.seconds == 0 then return end
  row.bandwidth, row.rate = row.bytes / row.seconds, row.flop / row.seconds
  if best.copy then row.bandwidth_share = row.bandwidth / best.copy end
  local gemm = row.dtype and best.gemm[row.dtype]
  if gemm then row.rate_share = row.rate / gemm end
end

-- ---- gaps ---------------------------------------------------------------------------------------

local function key_of(op, stage, micro) return ("%s %d %d"):format(op, stage, micro or -1) end

-- The seconds of each action in the last run, for each device; nil if that was not an ordinary run.
local function actions_before(pipe)
  if not pipe.core:ran_warm() then return nil end
  local before = {}
  for d = 1, #pipe.devices do
    before[d] = {}
    for _, e in ipairs(pipe.core:events(d - 1)) do
      before[d][key_of(e.op, e.stage, e.micro)] = e.finish - e.begin
    end
  end
  return before
end

-- Compare the time of the actions in the step before with the sum of their instructions.
local function compare(device, entries, before, runs)
  local own = {}
  for _, e in ipairs(entries) do
    if e.action then
      local key = key_of(e.action, e.stage, e.micro)
      own[key] = (own[key] or 0) + e.seconds / runs
    end
  end
  local whole, parts = 0, 0
  for key, seconds in pairs(own) do
    if not before[key] then return end -- that was another plan
    whole, parts = whole + before[key], parts + seconds
  end
  device.replayed, device.gaps = whole, whole - parts
end

-- ---- a profile ----------------------------------------------------------------------------------

local function sum(entries, wanted)
  local seconds = 0
  for _, e in ipairs(entries) do
    if not wanted or wanted(e) then seconds = seconds + e.seconds end
  end
  return seconds
end

local function device_of(pipe, d, entries)
  return {
    name = pipe.devices[d].name,
    kernels = sum(entries, function(e) return e.action ~= nil end),
    updates = sum(entries, function(e) return e.phase == "update" end),
    copies = sum(entries, function(e) return e.phase == "copy" end),
    seconds = sum(entries),
  }
end

local meta = { __name = "gpipe.Profile", __tostring = text.of }

-- A device and its rows, the slowest first.
local function part_of(pipe, d, o, before, runs)
  local entries = pipe.core:profile_entries(d - 1)
  local device = device_of(pipe, d, entries)
  if before and runs > 0 then compare(device, entries, before[d], runs) end
  local rows = rows_of(device.name, d - 1, entries, BY[o.by], paths_of(pipe, d))
  table.sort(rows, slower_first)
  device.ceilings = ceilings.of(pipe, d, rows, o.ceilings)
  for _, row in ipairs(rows) do set_rates(row, device.seconds, device.ceilings) end
  return { device = device, rows = rows }
end

-- The entries of all devices as rows, grouped by device. Over ranks each adds up its own.
local function add_up(pipe, made, o, before)
  local parts = share.by_device(pipe, "profile", function(d)
    return part_of(pipe, d, o, before, made.runs)
  end)
  for d, part in ipairs(parts) do
    made.devices[d] = part.device
    table.move(part.rows, 1, #part.rows, #made.rows + 1, made.rows)
  end
  return made
end

local SPEC = {
  by = { choices = { "op", "layer", "action" }, default = "op" },
  eager = { type = "boolean", default = false },
  ceilings = { check = ceilings.check },
}

--- Time everything from now on, with checked options; drop or finish must follow in any case.
function profile.begin(pipe, o)
  local before = actions_before(pipe)
  pipe.core:profile_begin(o.eager)
  return before
end

--- Stop timing, and drop the results.
function profile.drop(pipe)
  if not pipe.core or pipe.core:lost() then return end
  pcall(stream.settle, pipe) -- after an error, which is the one that counts
  if not pipe.core:lost() then pipe.core:profile_drop() end
end

--- Return the results since begin, which returned `before`.
function profile.finish(pipe, o, before)
  if not pipe.core then
    errors.raise "profile: the pipeline was closed while it was profiled"
  end
  stream.settle(pipe)
  local runs, one_plan, overhead = pipe.core:profile_end()
  local made = setmetatable({ rows = {}, devices = {}, runs = runs, by = o.by,
    overhead = overhead }, meta)
  add_up(pipe, made, o, one_plan and before)
  pipe.core:profile_drop()
  return made
end

local function arguments(step, first, second, third)
  if type(first) == "function" then return first, second end
  if first == nil or second == nil then
    errors.raise("profile: the arguments are %s and %s, expected a function, or x and y as "
      .. "pipe:step takes them", errors.show(first), errors.show(second))
  end
  batch.tensors("profile", "input", first)
  batch.tensors("profile", "target", second)
  return function() return step(first, second) end, third
end

--- Run something and return the time of each instruction in it, by op.
---
--- pipe:profile(x, y) takes a step, which trains like any other. pipe:profile(fn) calls a function
--- once and times everything that this pipeline's devices do meanwhile, opt:step() too. Every
--- instruction runs separately, on GPUs between two timed events; the bits are those of a step that
--- is not profiled. docs/performance.md explains the figures and what timing changes.
---
--- by: one row for each "op", "layer" or "action". ceilings: the best rates of the devices, {copy =
--- bytes a second, gemm = {f32 = FLOP a second, ..}}, false for none; by default they are measured,
--- once for each pipeline. Over ranks every rank has to call, and gets the devices of all. eager:
--- on GPUs launch op by op, even if a step would be replayed.
--- ```lua
--- local pipe <close> = gp.pipeline(nn.Sequential {nn.Linear(4, 4), nn.Linear(4, 2)},
---   {balance = {1, 1}, loss = nn.MSELoss()})
--- local opt = gp.optim.SGD(pipe:parameters(), {lr = 0.1})
--- local p = pipe:profile(function()
---   pipe:step(gp.ones {8, 4}, gp.ones {8, 2})
---   opt:step()
--- end)
--- print(p)
--- assert(p.rows[1].seconds > 0)
--- ```
---@param pipe table
---@param step function takes a step of the pipeline
---@param first function|gpipe.Tensor|gpipe.Tensor[]
---@param second? gpipe.Tensor|gpipe.Tensor[] the options, where first is a function
---@param third? {by: "op"|"layer"|"action", ceilings: table|false, eager: boolean}
---@return {rows: gpipe.ProfileRow[], devices: table[], runs: integer, overhead: number, result:
--- any}
function profile.take(pipe, step, first, second, third)
  local work, opts = arguments(step, first, second, third)
  local o = options.check("profile", opts, SPEC)
  local before = profile.begin(pipe, o)
  local _ <close> = setmetatable({}, { __close = function() profile.drop(pipe) end })
  local result = work()
  local made = profile.finish(pipe, o, before)
  made.result = result
  return made
end

return profile
