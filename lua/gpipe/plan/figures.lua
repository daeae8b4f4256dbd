-- lua/gpipe/plan/figures.lua - what the layers of a model take, for any number of rows in a
-- micro-batch and any device of the plan.
--
-- A model is planned (devices with given rates) or measured (others) with the smallest and the
-- largest micro-batch in question; between them every figure is taken to be a straight line, which
-- bytes and FLOP are. Times are not, and of two hundred plans the best is often one whose times
-- came out too short; so what is measured is measured again with the rows of the best plan, and
-- once more where it stays the best.
-- A profile is for one number of rows, and its figures grow in proportion.
-- Over several ranks one rank of each host measures (told.lua).

local create = require "gpipe.tensor.create"
local crossing = require "gpipe.plan.crossing"
local devices = require "gpipe.plan.devices"
local host = require "gpipe.plan.host"
local is_tensor = require "gpipe.tensor.is"
local knots = require "gpipe.plan.knots"
local modelled = require "gpipe.plan.modelled"
local profile = require "gpipe.profile"
local profile_request = require "gpipe.profile.request"
local samples = require "gpipe.plan.samples"
local sizes = require "gpipe.sizes"
local told = require "gpipe.plan.told"

local figures = {}

---@class gpipe.PlanLayer seconds and bytes of one micro-batch
---@field name string
---@field forward number
---@field input number
---@field weight number
---@field backward number
---@field forward_dropped number
---@field recompute number
---@field output_bytes number
---@field gradient_bytes number
---@field saved_bytes number
---@field parameter_bytes number
---@field workspace_bytes number
---@field head_bytes number
---@field carried_bytes number
---@field packed_bytes number
---@field scratch_bytes number
---@field selective? {saved_bytes: number, head_bytes: number, recompute: number}

-- Measured figures are not measured with more rows than so many times the fewest.
local MOST_TIMES = 8
local WINS = 2 -- how often a plan is measured again as the best

-- ---- at one number of rows ----------------------------------------------------------------------

local function request_at(self, rows, dense)
  local sample = self.sample
  local inputs = samples.with_rows(sample[1], rows, dense)
  local targets = self.loss and samples.with_rows(sample[2], rows, dense)
    or { create.zeros { rows } }
  return {
    who = self.who, model = self.model, layers = #self.model, loss = self.loss, rows = rows,
    precision = self.precision, inputs = inputs, targets = targets,
  }
end

--- Whether all layers train with so many rows in a micro-batch.
---@param self table
---@param rows integer
---@return boolean
function figures.train_with(self, rows)
  local good, message = pcall(modelled.plan, request_at(self.planned or self, rows), false, 1)
  if not good and type(message) ~= "string" then error(message, 0) end -- an interrupt
  return good
end

-- How gp.profile measures on a device.
local function how(self, device)
  local name = device.device or device.name -- without its rank
  return { repeats = self.repeats,
    device = device.kind == "cpu" and { name, threads = device.threads } or name }
end

local function measured_at(self, rows, device)
  local taken = profile.take(request_at(self, rows, true), how(self, device))
  return { layers = taken.layers, host_link = taken.host_link }
end

-- The layers with so many rows, and the way to the host's memory.
local function told_at(self, rows, device)
  return told(self, ("%d %d"):format(self.confirmed, rows), device, function(d)
    return measured_at(self, rows, d)
  end)
end

-- Plan or measure; what does not depend on the rates of a device is planned once.
local function taken_at(self, rows, device)
  if device.flops then
    local key = ("%d %s"):format(rows, device.own)
    self.counts[key] = self.counts[key] or modelled.layers(request_at(self, rows), device.own)
    return modelled.on_device(self.counts[key], device)
  end
  local found, class = told_at(self, rows, device), devices.class(device)
  self.host_links[class] = self.host_links[class] or found.host_link
  return found.layers
end

-- ---- for any number of rows ---------------------------------------------------------------------

-- What is known of a class of devices.
local function knots_of(self, device)
  local low, high = self.fewest, self.most
  if not device.flops then high = math.min(high, MOST_TIMES * low) end
  local class = devices.class(device)
  local known = self.knots[class]
  if not known then
    known = {}
    knots.add(known, low, taken_at(self, low, device))
    if high > low then knots.add(known, high, taken_at(self, high, device)) end
    self.knots[class] = known
  end
  return known
end

local function of_model(self, rows, device) return knots.at(knots_of(self, device), rows) end

--- Give each device its measured way to the host's memory, if it has memory of its own and does not
--- say how it reaches the host's.
---@param self table
---@param list gpipe.PlanDevice[]
function figures.link_hosts(self, list)
  for _, device in ipairs(list) do
    if device.own and not device.sim and not device.flops then
      local link = self.profile and self.profile.host_link
      if not self.profile then
        knots_of(self, device)
        link = self.host_links[devices.class(device)]
      end
      host.measured(device, link)
    end
  end
end

-- Call f with each device that is measured, one of each class.
local function each_measured(self, f)
  local seen = {}
  for _, device in ipairs(self.devices) do
    local class = devices.class(device)
    if not device.flops and self.knots[class] and not seen[class] then
      seen[class] = true
      f(device, class)
    end
  end
end

-- Measure the stages of a cut. Returns whether that tells something.
local function confirm_cut(self, rows, balance)
  if #balance == 1 then return false end
  local news = false
  each_measured(self, function(device, class)
    local stages = told(self, self.confirmed .. " cut", device, function(d)
      local known = of_model(self, rows, d)
      return profile.cut(request_at(self, rows, true), how(self, d), balance, known)
    end)
    if not stages then return end
    self.crossings[class], news = self.crossings[class] or crossing.new(), true
    crossing.note(self.crossings[class], balance, stages, of_model(self, rows, device))
  end)
  return news
end

--- Measure the layers once more with so many rows, and the stages of a cut, on all devices that are
--- measured. Returns whether that tells something: nothing is measured where rates or a profile say
--- the times, and no plan more often than twice.
---@param self table
---@param rows integer
---@param balance integer[]
---@return boolean
function figures.confirm(self, rows, balance)
  if self.profile then return false end
  local key, news = rows .. " " .. table.concat(balance, ","), false
  local wins = (self.wins[key] or 0) + 1
  if wins > WINS then return false end
  self.wins[key], self.confirmed = wins, self.confirmed + 1
  each_measured(self, function(device, class)
    news = true
    knots.add(self.knots[class], rows, taken_at(self, rows, device))
  end)
  news = confirm_cut(self, rows, balance) or news
  if news then self.made = {} end
  return news
end

-- Bytes that are as many for any number of rows, or nearly.
local CONSTANT = { packed_bytes = true, scratch_bytes = true }

local function of_profile(self, rows)
  local times, layers = rows / self.profile.rows, {}
  for i, given in ipairs(self.profile.layers) do
    local layer = {}
    for key, value in pairs(given) do layer[key] = value end
    for _, key in ipairs(knots.GROWING) do
      layer[key] = CONSTANT[key] and given[key] or given[key] * times
    end
    layer.selective = given.selective and {
      saved_bytes = given.selective.saved_bytes * times,
      head_bytes = given.selective.head_bytes * times,
      recompute = given.selective.recompute * times,
    }
    layers[i] = layer
  end
  return layers
end

--- The layers for micro-batches of so many rows on a device.
---@param rows integer
---@param device gpipe.PlanDevice
---@return gpipe.PlanLayer[]
local function layers(self, rows, device)
  local key = rows .. " " .. (self.profile and "" or devices.class(device))
  local made = self.made[key]
  if not made then
    made = self.profile and of_profile(self, rows) or of_model(self, rows, device)
    if not self.profile then
      made.crossing = crossing.seconds(self.crossings[devices.class(device)], made)
    end
    self.made[key] = made
  end
  return made
end

-- ---- making them --------------------------------------------------------------------------------

local function input_bytes_of(inputs)
  local sum = 0
  for _, t in ipairs(inputs) do sum = sum + sizes.of(t) end
  return sum / inputs[1].shape[1]
end

--- The figures of a profile; with the sample of its model the runtime can plan exact bytes.
---@param given gpipe.ModelProfile
---@param planned? table figures of that model
function figures.of_profile(given, planned)
  return {
    planned = planned, sample = planned and planned.sample,
    profile = given, count = #given.layers, made = {}, layers = layers,
    row_bytes = given.input_bytes / given.rows,
  }
end

--- Whether a profile says the same times for devices that are not of one sort.
---@param self table
---@param list gpipe.PlanDevice[]
---@return boolean
function figures.takes_alike(self, list)
  local first = self.profile and devices.sort(list[1])
  for _, device in ipairs(first and list or {}) do
    if devices.sort(device) ~= first then return true end
  end
  return false
end

--- The figures of a model; `bound` says for which numbers of rows, and on which devices.
---@param wanted gpipe.ProfileRequest of the whole sample
---@param repeats integer steps that are measured
function figures.of_model(wanted, repeats)
  return {
    who = wanted.who, model = wanted.model, loss = wanted.loss, precision = wanted.precision,
    sample = { wanted.inputs, wanted.targets }, count = wanted.layers, repeats = repeats,
    made = {}, knots = {}, counts = {}, told = {}, layers = layers, confirmed = 0, wins = {},
    host_links = {}, crossings = {},
    row_bytes = input_bytes_of(wanted.inputs), fewest = wanted.rows, most = wanted.rows,
  }
end

--- Say which numbers of rows will be asked for, and on which devices.
---@param self table
---@param fewest integer
---@param most integer
---@param list gpipe.PlanDevice[]
function figures.bound(self, fewest, most, list)
  self.fewest, self.most, self.devices = fewest, most, list
end

--- Check a model and its sample, or take the profile that stands in the place of the model.
---@param who string
---@param model any
---@param sample any
---@param o {loss: any, precision: string, repeats: integer}
function figures.of(who, model, sample, o)
  if is_tensor(sample) then sample = { sample } end
  local wanted = profile_request.of(who, model, sample,
    { chunks = 1, loss = o.loss, precision = o.precision })
  return figures.of_model(wanted, o.repeats)
end

return figures
