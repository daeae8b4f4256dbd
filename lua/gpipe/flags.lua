-- gpipe/flags.lua - command-line options of training scripts.
--
-- A script declares its options in one table; the defaults give the types. A flag that is unknown
-- or malformed ends the script with the usage on standard error and status 2: a run of hours in
-- which `--stpes 10000` was ignored would be worse.

local core = require "gpipe.core"
local errors = require "gpipe.errors"

local flags = {}

---@class gpipe.Flag
---@field [1] string "--steps N", or "--quiet" for a switch
---@field [2] any default: its type is that of the option; nil is a string that may be left out
---@field [3] string what it is for
---@field min? number smallest value; 1 for integers, 0 for other numbers
---@field writes? "file"|"folder" its value names a place to write. It is checked here, before the
--- work whose result goes there; a folder is created
---@field number? boolean for an option without a default: its value is a number

-- The flags of every script that has a gp.run.
local RUN = {
  { "--run-dir DIR", nil, "keep records and checkpoints there, and go on from the newest" },
  { "--resume", false, "there must be a checkpoint to go on from" },
  { "--minutes T", nil, "stop after the step that ends before this time", number = true },
  { "--dry-run", false, "say what a step would take of each device, and stop" },
}

-- "--steps N" -> "steps", "N"
local function split(flag)
  local name, placeholder = flag[1]:match("^%-%-([%w-]+)%s*(.*)$")
  return name, placeholder
end

-- ---- usage -----------------------------------------------------------------------------------

--- The text that --help prints.
--- ```lua
--- print(flags.usage("Trains.", {{"--steps N", 100, "steps"}}, "train.lua"))
--- ```
---@param about string one line: what the script does
---@param spec gpipe.Flag[]
---@param script string
---@return string
function flags.usage(about, spec, script)
  local lines = { ("usage: gpipe-lua %s [options]"):format(script), about, "" }
  local width = #"--help"
  for _, flag in ipairs(spec) do width = math.max(width, #flag[1]) end
  for _, flag in ipairs(spec) do
    local default = flag[2] and (" (%s)"):format(flag[2]) or ""
    lines[#lines + 1] = ("  %-" .. width .. "s  %s%s"):format(flag[1], flag[3], default)
  end
  lines[#lines + 1] = ("  %-" .. width .. "s  %s"):format("--help", "print this and stop")
  return table.concat(lines, "\n")
end

-- ---- values ----------------------------------------------------------------------------------

-- The value of an option given as text, or nil and what was wanted.
local function convert(flag, text)
  local kind = flag.number and "float" or math.type(flag[2])
  if not kind then return text end
  local number = tonumber(text)
  if kind == "integer" then number = math.tointeger(number) end
  local least = flag.min or (kind == "integer" and 1 or 0)
  if number and number >= least then return number end
  local what = kind == "integer" and "an integer" or "a number"
  return nil, ("%s of at least %g"):format(what, least)
end

-- Say why nothing can be written there; nil if something can. A file that did not exist before does
-- not exist afterwards.
local function fault_of_place(kind, path)
  if kind == "folder" then
    local made, message = core.folder_make(path)
    if not made then return message end
    path = path .. "/.gpipe-write-test"
  elseif require("gpipe.ranks").rank() > 0 then
    return nil -- rank 0 writes the files of a job, and may do so while another one looks
  end
  local there = io.open(path, "rb")
  if there then there:close() end
  local file, message = io.open(path, "ab")
  if not file then return message end
  file:close()
  if not there then os.remove(path) end
end

local function unknown(word, spec)
  local names = {}
  for i, flag in ipairs(spec) do names[i] = "--" .. split(flag) end
  local near = errors.suggest(word, names)
  return ("unknown option '%s'%s"):format(word,
    near and (" (did you mean '%s'?)"):format(near) or "")
end

local function find(spec, name)
  for _, flag in ipairs(spec) do
    if split(flag) == name then return flag end
  end
end

-- Read the option at position i: its name, value and the next position; or nil and the fault.
local function read_one(spec, words, i)
  local name, text = words[i]:match("^%-%-([%w-]+)=(.*)$")
  name = name or words[i]:match("^%-%-([%w-]+)$")
  local flag = name and find(spec, name)
  if not flag then return nil, unknown(words[i], spec) end
  if flag[2] == false then
    if text then return nil, ("--%s takes no value"):format(name) end
    return name, true, i + 1
  end
  local last = i
  if not text then last, text = i + 1, words[i + 1] end
  if not text then return nil, ("--%s needs a value"):format(name) end
  local value, wanted = convert(flag, text)
  if wanted then return nil, ("--%s is '%s', expected %s"):format(name, text, wanted) end
  local fault = flag.writes and fault_of_place(flag.writes, text)
  if fault then return nil, ("--%s: nothing can be written there: %s"):format(name, fault) end
  return name, value, last + 1
end

--- Read options without ending the script.
--- ```lua
--- local opts = flags.read({{"--steps N", 100, "steps"}}, {"--steps", "20"})
--- assert(opts.steps == 20)
--- ```
---@param spec gpipe.Flag[]
---@param words string[]
---@param operands? string[] receives the words that are not options, and all words after "--";
---  without it they are faults
---@return table<string, any>? values by name; nil where something is wrong
---@return string? fault
function flags.read(spec, words, operands)
  local values = {}
  for _, flag in ipairs(spec) do values[split(flag)] = flag[2] end
  local i = 1
  while i <= #words do
    if operands and words[i] == "--" then
      table.move(words, i + 1, #words, #operands + 1, operands)
      return values
    elseif operands and not words[i]:find "^%-." then
      operands[#operands + 1], i = words[i], i + 1
    else
      local name, value, after = read_one(spec, words, i)
      if not name then return nil, value end
      values[name], i = value, after
    end
  end
  return values
end

-- The flags of a script, followed by those of gp.run if it asks for them. A flag of the script
-- replaces one of gp.run with the same name.
local function all_of(spec, opts)
  if not (opts and opts.run) then return spec end
  local all = table.move(spec, 1, #spec, 1, {})
  for _, flag in ipairs(RUN) do
    if not find(spec, (split(flag))) then all[#all + 1] = flag end
  end
  return all
end

--- Read the options of a script. `--help` prints the usage and ends it; a fault prints the usage on
--- standard error and ends it with status 2.
--- ```lua
--- local opt = flags.parse("Trains.", {{"--steps N", 100, "steps"}}, {[0] = "train.lua"})
--- ```
---@param about string one line: what the script does
---@param spec gpipe.Flag[]
---@param words string[] Lua's own `arg`
---@param opts? {run: boolean} run: also --run-dir, --resume, --minutes and --dry-run, for gp.run
---@return table<string, any> values by name
function flags.parse(about, spec, words, opts)
  spec = all_of(spec, opts)
  local script = words[0] or "script.lua"
  for _, word in ipairs(words) do
    if word == "--help" or word == "-h" then
      print(flags.usage(about, spec, script))
      os.exit(0, true)
    end
  end
  local values, fault = flags.read(spec, words)
  if not values then
    io.stderr:write(("%s: %s\n%s\n"):format(script, fault, flags.usage(about, spec, script)))
    os.exit(2, true)
  end
  return values --[[@as table]]
end

return flags
