-- lua/gpipe/shell/repl.lua - the interactive mode of gpipe-lua: reads a chunk, runs it, prints what
-- it returned.
--
-- It works like lua's own: a line that is an expression prints its values, and a chunk continues on
-- the next line only while it is incomplete. In addition, top-level locals survive their line, `_`
-- is the last value, and `_1`, `_2` ... are the values of the session in their order. Reading and
-- running (Ctrl-C, tracebacks) are in C: module gpipe.terminal.

local chunks = require "gpipe.shell.chunks"
local commands = require "gpipe.shell.commands"
local complete = require "gpipe.shell.complete"
local core = require "gpipe.core"
local history = require "gpipe.shell.history"
local mistakes = require "gpipe.shell.mistakes"
local others = require "gpipe.shell.others"
local paint = require "gpipe.shell.paint"
local screen = require "gpipe.screen"
local show = require "gpipe.show"
local startup = require "gpipe.shell.startup"
local terminal = require "gpipe.terminal"
local who = require "gpipe.shell.who"

local repl = {}

local SLOW = 1 -- seconds; a chunk that takes longer is timed

local banner = [[
Expressions print their values; _ is the last one. Locals typed here stay to the end (as globals).
Ctrl-C stops what runs, Ctrl-D leaves. Ready: gp, nn = gp.nn, optim = gp.optim; help says more.]]

-- Reading ---------------------------------------------------------------------------------------

local function is_incomplete(message)
  return message:sub(-5) == "<eof>"
end

-- Print what went wrong.
local function complain(message)
  terminal.complain(screen.has_colours(io.stderr) and paint.error(message) or message)
end

-- Keep a text for later sessions too. If it cannot be kept, say so once.
local keep
local function remember(text)
  terminal.remember(text)
  if not keep then return end
  local good, why = keep(text)
  if good then return end
  keep = nil
  complain("the history cannot be written: " .. why)
end

-- Read lines until they form a chunk, or until it is clear that they will not. Return the chunk and
-- its text, or nil and a message (false if there is nothing to say); nil at the end.
local function read_chunk(prompt, prompt2)
  local text = terminal.read(prompt, complete)
  if not text then return text, false end
  local command = commands.find(text)
  if command then
    mistakes.note(text)
    remember(text)
    return command, text
  end
  while true do
    local chunk, message = chunks.compile(text)
    if chunk or not is_incomplete(message) then
      mistakes.note(text)
      if text:find("%S") then remember(text) end
      if chunk then others.tell(text) end
      return chunk or false, chunk and text or message
    end
    local more = terminal.read(prompt2, complete)
    if more == false then return false, false end
    if not more then return false, message end
    text = text .. "\n" .. more
  end
end

-- Printing --------------------------------------------------------------------------------------

local LONGEST = 10000 -- bytes of a string that are printed

-- Show both ends of a long string, so that a mistake does not flood the screen.
local function shortened(text)
  local half = LONGEST // 4
  return ("%s\n... (%d bytes in all; print(_) shows them)\n%s"):format(text:sub(1, half), #text,
    text:sub(-half))
end

-- The texts of values as printed: plain tables show their contents; on a terminal everything is
-- coloured.
local function texts_of(results)
  local coloured, texts = screen.has_colours(io.stdout), {}
  for i = 2, results.n do
    local value = results[i]
    if type(value) == "string" and #value > LONGEST then value = shortened(value) end
    if coloured then value = paint.value(value)
    elseif type(value) == "table" then value = show.value(value)
    end
    texts[i - 1] = value
  end
  return table.unpack(texts, 1, results.n - 1)
end

-- Print results as lua does; an error in a __tostring or in print itself becomes a message.
local function print_results(results, text)
  if results.n < 2 then return end
  chunks.keep_values(results)
  local ok, message = terminal.call(function() print(texts_of(results)) end)
  if not ok then complain(message) end
  local near = results.n == 2 and results[2] == nil and mistakes.nothing(text)
  if near then complain(near) end
end

-- Print how long a chunk ran if it took longer than the global `_SLOW` (seconds).
local function say_time(seconds)
  local least = rawget(_G, "_SLOW")
  if seconds < (type(least) == "number" and least or SLOW) then return end
  print(("(%.3g s)"):format(seconds))
end

local function run_chunk(chunk, text, typing)
  local began = core.seconds()
  local results = table.pack(terminal.call(chunk, chunks.keep_locals))
  local seconds = core.seconds() - began
  if results[1] then print_results(results, text) else complain(mistakes.explain(results[2])) end
  for _, line in ipairs(others.complaints(results[1])) do complain(line) end
  if typing or rawget(_G, "_SLOW") then say_time(seconds) end
end

-- Starting --------------------------------------------------------------------------------------

local function describe_devices(gp)
  local names = {}
  for i, device in ipairs(gp.devices()) do names[i] = device.name end
  return table.concat(names, " ")
end

local function set_globals()
  local gp = require "gpipe"
  _G.gp, _G.nn = gp, gp.nn
  _G.optim = gp.optim
  if _G.help == nil then _G.help = require "gpipe.shell.help" end
  if _G.who == nil then _G.who = who.print end
  for _, name in ipairs { "exit", "quit" } do
    if _G[name] == nil then _G[name] = commands.leave end
  end
  return gp
end

-- Make the globals of the interactive mode and print a greeting. If something fails, report it and
-- go on: plain Lua still works.
local function greet(typing)
  local ok, gp = terminal.call(set_globals)
  if not ok then return complain(gp) end
  if not typing then return end
  local found, devices = terminal.call(describe_devices, gp)
  print(("gpipe-lua %s (%s)%s"):format(gp.version, _VERSION, found and ", " .. devices or ""))
  print(screen.fold(banner))
end

local of_strings = getmetatable "" -- a session can lose it: debug.setmetatable("", nil)

-- The text of a prompt: the script's global, if it has set one.
local function prompt_of(name, default, typing)
  return typing and tostring(rawget(_G, name) or default) or ""
end

-- Run one chunk; return false at the end of the input.
local function turn(typing)
  if getmetatable "" ~= of_strings then debug.setmetatable("", of_strings) end
  local prompt, prompt2 = prompt_of("_PROMPT", "> ", typing), prompt_of("_PROMPT2", ">> ", typing)
  local chunk, message = read_chunk(prompt, prompt2)
  if chunk then run_chunk(chunk, message, typing)
  elseif message then complain(message)
  elseif chunk == nil then return false
  end
  return true
end

local MOST_FAULTS = 3 -- failing turns in a row after which the session ends

-- Recover from a failure of the prompt itself, when the session has removed something that it
-- needs.
local function recover(message)
  complain("the prompt: " .. tostring(message))
end

---Read and run chunks until the end of the input. Errors are printed and do not end it.
---In a job rank 0 has the terminal, and all ranks run what is typed there.
---Prompts are the globals `_PROMPT` and `_PROMPT2`, as in lua, "> " and ">> " by default;
---without a terminal there are none.
function repl.run()
  local typing = terminal.interactive()
  greet(typing)
  who.begin()
  if others.follows() then return others.follow() end
  others.begin(typing)
  if typing then
    keep = history.open()
    startup.run()
  end
  local faults = 0
  repeat
    local good, more = pcall(turn, typing)
    faults = good and 0 or faults + 1
    if not good then recover(more) end
  until more == false or faults >= MOST_FAULTS
  if typing then print() end
end

return repl
