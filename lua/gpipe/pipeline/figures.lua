-- lua/gpipe/pipeline/figures.lua - the methods of a pipeline that tell about it: memory, times,
-- pages, pictures.

local activations = require "gpipe.pipeline.activations"
local areas = require "gpipe.pipeline.areas"
local checks = require "gpipe.pipeline.checks"
local describe = require "gpipe.pipeline.describe"
local errors = require "gpipe.errors"
local passes = require "gpipe.pipeline.passes"
local paths = require "gpipe.pipeline.paths"
local post_mortem = require "gpipe.ranks.post_mortem"
local readable = require "gpipe.readable"
local text_of = require "gpipe.pipeline.text"

---@class gpipe.Pipeline
local methods = {}

--- What the pipeline takes of each device's memory: a list of {name, planned, measured,
--- lower_bound, cap, areas = {parameters, gradients, saved, transient, edges, ...}}, in bytes.
--- Printed, it is a table; `draw`, `svg` and `html` show it over the tasks of each device, `alive`
--- lists what is alive during one. Over ranks every rank has to call, and gets all devices.
--- ```lua
--- local pipe <close> = gp.pipeline(nn.Sequential {nn.Linear(2, 1)}, {loss = nn.MSELoss()})
--- pipe:step(gp.ones {4, 2}, gp.ones {4, 1})
--- local memory = pipe:memory()
--- assert(memory[1].planned == memory[1].measured)
--- ```
---@return gpipe.Memory
function methods:memory()
  checks.quiet(self, "memory")
  return areas.of(self)
end

--- What a micro-batch saves between its forward and its backward pass, by the plan that was used
--- last: a list of {layer, stage, name, op, shape, bytes, last, why}; `last` is the action that
--- reads it last. Printed, it is a table.
--- ```lua
--- local pipe <close> = gp.pipeline(nn.Sequential {nn.Linear(2, 1)}, {loss = nn.MSELoss()})
--- pipe:step(gp.ones {4, 2}, gp.ones {4, 1})
--- print(pipe:activations())
--- ```
---@return table[]
function methods:activations()
  checks.quiet(self, "activations")
  local last
  for _, plan in pairs(self.plans) do
    local trains = plan.kind == "step" or plan.kind == "split"
    if trains and (not last or plan.used > last.used) then last = plan end
  end
  if not last then
    errors.raise("activations: nothing is planned yet, expected a step (or option 'sample') first")
  end
  return activations.of(self.core, last.handle)
end

--- What every device did, and what it waited for, when the last pass was given up: because it made
--- no progress for the time of option `watchdog`, or because of Ctrl-C. nil if it was not given up.
--- Over ranks, after the watchdog's time, it is what the devices of all ranks did.
--- ```lua
--- local pipe <close> = gp.pipeline(nn.Sequential {nn.Linear(4, 2)}, {loss = nn.MSELoss(), watchdog
--- = 60}) assert(pipe:post_mortem() == nil)
--- ```
---@return string?
function methods:post_mortem()
  if self.core then return post_mortem.of(self.core:report()) end
end

--- When each action of the last training pass began and ended (of the last pass, if none trained):
--- {name, devices, makespan, unit = "s", [1 ... devices] = list of {op, stage, micro, version,
--- wait, begin, finish}}, element 1 for device 0. wait is when the device began to wait for the
--- action. Drawing functions take this form.
---
--- Over ranks every rank has to call, and gets the devices of all. Time is that of rank 0's clock;
--- `clock_error` says to within how many seconds the others' are known: 0 on one host, where all
--- processes have the same.
---@return table
function methods:timeline()
  checks.quiet(self, "timeline")
  return describe.timeline(self)
end

for _, name in ipairs { "lowered", "costs", "draw", "svg", "html", "trace" } do
  local method = describe[name]
  methods[name] = function(self, ...)
    checks.quiet(self, name)
    return method(self, ...)
  end
end

--- Return the time of each instruction in a step, or in a function's work; see
--- gpipe.pipeline.profile.
function methods:profile(...)
  checks.quiet(self, "profile")
  if self.automatic then require("gpipe.pipeline.profile.automatic").stop(self, true) end
  local function step(x, y) return self:step(x, y) end
  return require("gpipe.pipeline.profile").take(self, step, ...)
end

-- What the last training pass took, made anew at every read.
local function stats(pipe)
  checks.quiet(pipe, "stats")
  local raw = passes.stats(pipe)
  local figures = readable {
    seconds = raw.seconds, bubble = {}, peak_live = {}, peak_bytes = {}, busy = {},
  }
  for d, device in ipairs(raw) do
    figures.bubble[d] = raw.seconds > 0 and math.max(0, 1 - device.busy / raw.seconds) or 0
    figures.busy[d] = device.busy
    figures.peak_live[d], figures.peak_bytes[d] = device.peak_live, device.peak_bytes
  end
  local scale = pipe.core:loss_scale()
  figures.skipped = pipe.core:skipped()
  if scale then
    figures.loss_scale, figures.skipped = scale.scale, scale.skipped + figures.skipped
  end
  return figures
end

--- Describe what the pipeline runs on, and by which paths: see gpipe.pipeline.paths.
function methods:describe()
  checks.quiet(self, "describe")
  return paths.describe(self, text_of(self))
end

return { methods = methods, stats = stats }
