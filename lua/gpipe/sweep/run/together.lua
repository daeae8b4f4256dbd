-- lua/gpipe/sweep/run/together.lua - trials that all ranks of a job run together.
--
-- Rank 0 has the sweep's file: it takes trials, writes reports and outcomes, and tells the others
-- which trial is next. They run the same function, so that a trial may make pipelines over ranks.

local core = require "gpipe.core"
local encode = require "gpipe.ranks.encode"
local errors = require "gpipe.errors"
local limit = require "gpipe.ranks.limit"
local ranks = require "gpipe.ranks"

local together = {}

--- Do several ranks run the trials?
---@return boolean
function together.is_on() return ranks.ranks() > 1 end

--- Is this a rank that does what rank 0 says?
---@return boolean
function together.follows() return ranks.rank() > 0 end

-- Bring a plain value of rank 0 to all ranks. what: shorter than 24 bytes
local function from_first(what, value)
  if not together.is_on() then return value end
  local text = together.follows() and "" or encode.write(what, value)
  return encode.read(ranks.gather(what, text)[1])
end

---@class gpipe.ToldTrial what the other ranks know of a trial
---@field number integer
---@field attempts integer
---@field params table
---@field budget number?

--- Tell which trial is next, or learn it; nil: there are no more.
---@param told? gpipe.ToldTrial on rank 0
---@return gpipe.ToldTrial?
function together.next(told)
  local _ <close> = limit.within(0) -- rank 0 may wait for trials of other processes
  return from_first("sweep: the next trial", told)
end

local MOST_CALLS = 1000 -- of a trial's function that goes on after another rank's has failed

local END = "sweep: end of a trial"

-- The error with which a trial has begun to fail: ranks that fail because another one has come to
-- the end before say so.
local function reason_in(texts)
  local reason
  for r, text in ipairs(texts) do
    local follows = text:find(END, 1, true)
    if text ~= "" and not follows then
      return r == 1 and text or ("rank %d: %s"):format(r - 1, text)
    end
    reason = reason or text ~= "" and text or nil
  end
  return reason
end

--- Wait until all ranks are through with a trial, before rank 0 takes another. Where the trial has
--- failed on this rank alone, the others are still in calls of it: each of these raises there and
--- here, until they have come to the end, too.
---@param text? string this rank's error
---@return string? reason why the trial has failed, on whichever rank
function together.meet(text)
  if not together.is_on() then return text end
  local good, result
  for _ = 1, MOST_CALLS do
    good, result = pcall(ranks.gather, END, text or "")
    if good then return reason_in(result) end
    if type(result) ~= "string" or not core.rank_check() then break end
  end
  error(result, 0)
end

--- End if a rank is gone: then a trial has not failed by itself. In a job that the sweep has
--- started, the process ends at once, so that the trial counts as that of a process that died, and
--- is run again.
function together.check()
  local good, why = core.rank_check()
  if good then return end
  local started = os.getenv "GPIPE_SWEEP_WORKER"
  if not started or started == "" then errors.raise("gp.sweep: %s", why) end
  io.stderr:write("gpipe: gp.sweep: ", why, "\n")
  os.exit(1, false)
end

--- Whether a trial should stop, as rank 0's rule says.
---@param stops boolean
---@return boolean
function together.stops(stops) return from_first("trial:report", stops) end

--- Run the trials that rank 0 takes.
---@param sweep gpipe.Sweep
---@param f function
function together.follow(sweep, f)
  local one = require "gpipe.sweep.run.one" -- not at the top: it requires this file
  for told in together.next do
    together.meet(one.follow(sweep, told, f))
  end
  sweep.store:refresh()
end

return together
