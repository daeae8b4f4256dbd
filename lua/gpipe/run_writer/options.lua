-- lua/gpipe/run_writer/options.lua - the options of gp.run, from the script and from the command
-- line.

local errors = require "gpipe.errors"
local dry_mode = require "gpipe.dry_mode"
local options = require "gpipe.options"
local parts = require "gpipe.checkpoint.parts"

local run_options = {}

local function state_fault(states)
  for name, part in pairs(states) do
    local good = pcall(function() return part.state and part.restore or error() end)
    if type(name) ~= "string" or not good then
      return "names and objects that have state() and restore()"
    end
  end
end

local SPEC = {
  dir = { type = "string" }, config = { type = "table" }, flags = { type = "table" },
  pipe = parts.pipe, model = parts.model, opt = parts.opt, data = parts.data,
  state = { type = "table", default = {}, check = state_fault },
  every = { type = "integer", min = 0, default = 100 },
  keep = { type = "integer", min = 1, default = 3 },
  background = { type = "boolean", default = true },
  steps = { type = "integer", min = 1 }, minutes = { type = "number", above = 0 },
  resume = { type = "boolean" }, quiet = { type = "boolean" },
  unit = { type = "string", default = "rows" },
}

local RUN_FLAGS = { ["run-dir"] = true, resume = true, minutes = true, ["dry-run"] = true }

-- The flags of the command line (flags.parse with run = true) fill in options that are not given.
local function with_flags(opts)
  local flags = opts.flags
  opts.dry = dry_mode.is_on()
  opts.nowhere = opts.dry
  if not flags then return opts end
  local config = {}
  for name, value in pairs(flags) do
    if not RUN_FLAGS[name] then config[name] = value end
  end
  opts.config = opts.config or config
  opts.minutes = opts.minutes or flags.minutes
  if opts.resume == nil then opts.resume = flags.resume end
  if opts.quiet == nil then opts.quiet = flags.quiet end
  opts.path, opts.dry = flags["run-dir"], flags["dry-run"] or opts.dry
  opts.nowhere = not opts.path and not opts.dir or opts.dry
  return opts
end

--- Check the options of a run and add what its flags say: `path` (of the folder, where a flag names
--- it), `nowhere` (there is no folder) and `dry`.
---@param name string
---@param opts? table
---@return table
function run_options.check(name, opts)
  if type(name) ~= "string" or name == "" then
    errors.raise("gp.run: name is %s, expected a word", errors.show(name))
  end
  opts = with_flags(options.check("gp.run", opts, SPEC))
  if opts.pipe and opts.model then
    errors.raise "gp.run: pipe and model are given, expected one (a pipeline has a model)"
  end
  return opts
end

--- What a checkpoint of the run holds, as options of gp.checkpoint.
---@param opts table of run_options.check
---@return table
function run_options.parts_of(opts)
  return { pipe = opts.pipe, model = not opts.pipe and opts.model or nil, opt = opts.opt,
    data = opts.data }
end

return run_options
