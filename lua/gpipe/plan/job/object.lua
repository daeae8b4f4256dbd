-- lua/gpipe/plan/job/object.lua - a simulated job: its figures, and how they print.

local columns = require "gpipe.draw.columns"
local counted = require "gpipe.counted"
local text = require "gpipe.plan.text"

---@class gpipe.Job
---@field label string of the schedule
---@field replicas integer
---@field devices integer of a replica
---@field ranks integer
---@field hosts integer
---@field rows integer of a step, over all replicas
---@field pipeline number seconds of a replica's step, where nothing varies
---@field exchange number seconds that adding up the gradients takes behind it, or adds to a stream
---@field quiet number seconds of a step of all, where nothing varies
---@field step number seconds: the mean of the slowest replica
---@field error number? standard error of `step`
---@field late number? seconds that one step in a hundred takes or more
---@field unmet boolean? no run has met a straggler: the step is a lower estimate, without error
---@field short boolean? fewer samples than replicas: `step` is a lower estimate
---@field samples integer simulated runs of a replica, or of several
---@field together integer? replicas of an asynchronous schedule that are simulated together
---@field failures gpipe.Goodput?
---@field goodput number share of the time that is spent on steps that last
---@field rate number rows a second that last
local Job = { __name = "gpipe.Job" }

local object = {}

local function step_line(job)
  local parts = { ("  step %s"):format(text.duration(job.step)) }
  if job.error then parts[1] = parts[1] .. " +- " .. text.duration(job.error) end
  parts[#parts + 1] = ("%s where nothing varies"):format(text.duration(job.quiet))
  if job.late then
    parts[#parts + 1] = ("one in a hundred %s or more"):format(text.duration(job.late))
  end
  return table.concat(parts, "; ")
end

local function exchange_line(job)
  local every = job.local_steps > 1 and (" every %d steps"):format(job.local_steps) or ""
  return ("  of it the pipeline %s, adding up gradients %s%s"):format(text.duration(job.pipeline),
    text.duration(job.exchange), every)
end

--- The job in words.
function Job:__tostring()
  local lines = {
    ("job: %s, %s of %s, schedule %s, %s"):format(counted(self.ranks, "rank"),
      counted(self.replicas, "replica"), counted(self.devices, "device"), self.label,
      counted(self.chunks, "micro-batch")),
    step_line(self), exchange_line(self),
  }
  if self.varies then
    lines[#lines + 1] = ("  %d sampled runs of %s%s%s"):format(self.samples,
      self.together and self.together .. " replicas together" or "a replica", self.short
      and (", fewer than %s: the step is a lower estimate"):format(
        self.together and "there are" or "replicas") or "",
      self.unmet and ", none of which has met a straggler: the step is a lower estimate" or "")
  end
  if self.failures then lines[#lines + 1] = "  " .. tostring(self.failures) end
  lines[#lines + 1] = ("  %.4g rows a second that last"):format(self.rate)
  return table.concat(lines, "\n")
end

--- Several jobs as one table.
---@param jobs gpipe.Job[]
---@param left string[] schedules that replicas cannot run
---@return string
function object.table(jobs, left)
  local rows = { { "schedule", "chunks", "checkpoint", "quiet", "step", "times", "goodput",
    "rows/s" } }
  for i, job in ipairs(jobs) do
    rows[i + 1] = {
      job.label, tostring(job.chunks), job.row.checkpoint, text.duration(job.quiet),
      text.duration(job.step), ("%.3f"):format(job.step / job.quiet),
      ("%.2f %%"):format(100 * job.goodput), columns.number(job.rate),
    }
  end
  if #left == 0 then return columns.text(rows) end
  return ("%s\n(left out: %s, which replicas cannot run, because it updates before all of a step's "
    .. "micro-batches are through)"):format(columns.text(rows), table.concat(left, ", "))
end

--- Make the object.
---@param fields table
---@return gpipe.Job
function object.new(fields) return setmetatable(fields, Job) end

return object
