-- tests/child.lua - run gpipe-lua (or another program) as a child and capture what it prints.
--
-- Specs of the program itself need a real process: exit codes, streams, signals, a terminal.

-- GPIPE_TEST_SECONDS raises the time limit, because builds that count lines are slow.
local child = {
  program = os.getenv "GPIPE_LUA" or "build/gpipe-lua",
  seconds = tonumber(os.getenv "GPIPE_TEST_SECONDS") -- the thread sanitizer is slow
    or os.getenv "GPIPE_SANITIZE" == "thread" and 1800 or 60,
}

-- Quotes a text for the shell.
function child.quote(text)
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

local function read_and_remove(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("a")
  file:close()
  os.remove(path)
  return text
end

-- Writes a temporary file with this text; returns its name.
function child.file(text)
  local path = os.tmpname()
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
  return path
end

-- Runs a shell command. Returns stdout, stderr and the exit code (128 + number after a signal).
-- SIGINT gets its default action, because a test that runs in the background ignores it, and its
-- children would inherit that.
function child.shell(command, input)
  local out, err, source = os.tmpname(), os.tmpname(), child.file(input or "")
  local line = ("env --default-signal=INT timeout -k 1 %d sh -c %s >%s 2>%s <%s")
    :format(child.seconds, child.quote(command), out, err, source)
  local _, how, code = os.execute(line)
  os.remove(source)
  return read_and_remove(out), read_and_remove(err), how == "signal" and 128 + code or code
end

-- Runs gpipe-lua with a list of arguments. options: input = text, environment = {NAME = value}
function child.run(arguments, options)
  options = options or {}
  local words = { "exec env" }
  for name, value in pairs(options.environment or {}) do
    words[#words + 1] = name .. "=" .. child.quote(value)
  end
  words[#words + 1] = child.quote(options.program or child.program)
  for _, argument in ipairs(arguments) do words[#words + 1] = child.quote(argument) end
  return child.shell(table.concat(words, " "), options.input)
end

-- Returns the seconds to wait before a line: text may come early, but keys need the prompt. Most of
-- all Ctrl-D does, which a terminal without an editor takes for the end of a line.
local function pause_before(line)
  if not line or line == "^D" then return 1 end
  return (line:find "%^C$" or line:find "\\" or line:find "^%$") and 0.7 or 0.2
end

-- Types lines on a terminal (needs `script`). "^C" and "^D" are keys, and a text that ends in "^C"
-- is typed without a newline; the pauses let the program reach its prompt. Returns the screen and
-- the exit code.
function child.type_lines(lines, environment)
  local keys, words = { "sleep " .. (os.getenv "GPIPE_SANITIZE" and 2 or 1) }, {}
  for i, line in ipairs(lines) do
    local key = line == "^C" and "\\003" or line == "^D" and "\\004" or line .. "\\n"
    if line:find ".%^C$" then key = line:sub(1, -3) .. "\\003" end
    keys[#keys + 1] = ("printf %s; sleep %g"):format(child.quote(key:gsub("%%", "%%%%")),
      pause_before(lines[i + 1]))
  end
  for name, value in pairs(environment or {}) do
    words[#words + 1] = name .. "=" .. child.quote(value)
  end
  -- exec, because a shell in between would get the Ctrl-C too, and some (dash) then end with 130.
  local script = ("(%s) | env SHELL=/bin/sh TERM=dumb LC_ALL=C %s script -qec %s /dev/null")
    :format(table.concat(keys, "; "), table.concat(words, " "),
      child.quote("exec " .. child.program))
  local out, err, code = child.shell(script)
  return out:gsub("\r", "") .. err, code
end

-- Returns Lua text that sends SIGINT to the program that runs it, after each of the pauses (in
-- seconds). The text keeps the pipe in a global, because the collector would wait for its end.
function child.presses(...)
  local presses = {}
  for i, pause in ipairs { ... } do presses[i] = ("sleep %g; kill -INT $PPID"):format(pause) end
  return #presses > 0 and ("Presses = io.popen(%q)\n"):format(table.concat(presses, "; ")) or ""
end

function child.has(command)
  return (select(3, child.shell("command -v " .. command))) == 0
end

return child
