-- tests/support/jobs.lua - starts a script in several processes, by each way in which ranks are
-- connected.

local child = dofile "tests/child.lua"

local jobs = {}

-- A port of this host for the n-th job of a spec; specs that run side by side have other ones.
local base = 20000 + require("gpipe.core").process() * 16 % 10000
local taken = 0
function jobs.port()
  taken = taken + 1
  return base + taken % 16
end

local function quoted(words)
  local list = {}
  for i, word in ipairs(words) do list[i] = child.quote(word) end
  return table.concat(list, " ")
end

local function environment_of(variables)
  local words = { "env" }
  for name, value in pairs(variables or {}) do words[#words + 1] = name .. "=" .. child.quote(value) end
  return table.concat(words, " ")
end

-- All ranks by one launcher.
local function launch(n, words, variables)
  return ("exec %s %s --ranks %d %s"):format(environment_of(variables), child.quote(child.program), n,
    quoted(words))
end

local ways = {}

function ways.unix(n, words, variables) return launch(n, words, variables) end

function ways.tcp(n, words, variables)
  return "GPIPE_TRANSPORT=tcp; export GPIPE_TRANSPORT; " .. launch(n, words, variables)
end

-- A launcher for each rank, as on hosts of their own; shell text by rank.
local function each_host(n, words, variables)
  local lines, port = {}, jobs.port()
  for k = 0, n - 1 do
    lines[k] = ("GPIPE_JOB_KEY=secret %s %s --ranks 1 --node %d/%d --master 127.0.0.1:%d %s"):format(
      environment_of(variables), child.quote(child.program), k, n, port, quoted(words))
  end
  return lines
end

function ways.hosts(n, words, variables)
  local lines = each_host(n, words, variables)
  return ("%s &\n%s\ncode=$?; wait; exit $code"):format(table.concat(lines, " &\n"), lines[0])
end

-- Open MPI has to be told that root may run it, and that there are few cores; MPICH does not ask.
local function flags_of_mpirun()
  local version = child.shell "mpirun --version"
  return version:find("Open MPI", 1, true) and "--allow-run-as-root --oversubscribe" or ""
end

function ways.mpi(n, words, variables)
  return ("exec %s mpirun %s -n %d %s %s"):format(environment_of(variables), flags_of_mpirun(), n,
    child.quote(child.program), quoted(words))
end

-- Why a way cannot be gone here; nil: it can.
function jobs.missing(way)
  if way ~= "mpi" then return nil end
  if not child.has "mpirun" then return "no mpirun" end
  local plugin = child.program:match "^(.*)/[^/]*$" .. "/libgpipe_mpi.so"
  local file = io.open(plugin, "rb")
  if not file then return "this build has no libgpipe_mpi.so" end
  file:close()
end

-- Runs a script (words: its name and arguments) in n processes; returns as child.run does. Only rank
-- 0 writes to standard output.
function jobs.run(way, n, words, variables)
  return child.shell(ways[way](n, words, variables))
end

-- Runs a script by a launcher for each rank; returns their exit codes, in order: "75 137", and what
-- they have written to standard error.
function jobs.codes(n, words, variables)
  local lines, place = each_host(n, words, variables), os.tmpname()
  for k = 0, n - 1 do lines[k] = ("{ %s; echo $? >%s%d; } &"):format(lines[k], place, k) end
  local _, err = child.shell(("%s\n%s\nwait"):format(lines[0], table.concat(lines, "\n")))
  local codes = child.shell(("cat %s?*; rm %s*"):format(place, place))
  return codes:gsub("\n", " "):sub(1, -2), err
end

-- The same with the text of a script.
function jobs.script(way, n, text, variables)
  local script = child.file(text)
  local out, err, code = jobs.run(way, n, { script }, variables)
  os.remove(script)
  return out, err, code
end

return jobs
