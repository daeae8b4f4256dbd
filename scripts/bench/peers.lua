-- scripts/bench/peers.lua - the programs that people would use instead, doing the same work in
-- turns.
--
-- The peers are Python programs beside the checkout (../shared/peers, or GPIPE_PEER_FOLDER; one is
-- here, ddp_torch.py) and need PyTorch in GPIPE_PEER_PYTHON, /opt/peers/bin/python or python3;
-- without them the figures are skipped. A round runs each of our programs right next to the one it
-- is compared with; the median of the rounds' ratios counts.
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local figure = require "figure"
local flags, core = require "gpipe.flags", require "gpipe.core"

local opt = flags.parse("Compare with PyTorch, torch.distributed.pipelining and torchgpipe.", {
  { "--rounds N", 3, "turns of each" }, { "--steps N", 12, "timed steps in a turn" },
  { "--only NAME", "", "eager, pipelining, ranks, ddp, torchgpipe, resnet or engine" },
}, arg)
local here = arg[0]:match("^.*/") or "./"
local folder = os.getenv("GPIPE_PEER_FOLDER") or here .. "../../../shared/peers"
local quote = figure.quote

-- ---- what is at hand -------------------------------------------------------------------------

local function succeeds(command) return (os.execute(command .. " >/dev/null 2>&1")) or false end

-- The first Python that can import PyTorch; nil and why not.
local function find_python()
  local tried = {}
  for _, python in ipairs { os.getenv("GPIPE_PEER_PYTHON") or "/opt/peers/bin/python",
    "python3" } do
    if succeeds(quote(python) .. " -c 'import torch'") then return python end
    tried[#tried + 1] = python
  end
  return nil, ("no PyTorch in %s (set GPIPE_PEER_PYTHON)"):format(table.concat(tried, " or "))
end

-- Why nothing can be compared here, or nil and the Python.
local function look()
  if not succeeds("test -r " .. quote(folder .. "/gpt_torch.py")) then
    return ("no peers in %s (set GPIPE_PEER_FOLDER)"):format(folder)
  end
  if core.machine().cores < 2 then return "this machine has one core" end
  local python, why = find_python()
  return why, python
end

local why, python = look()

-- ---- commands --------------------------------------------------------------------------------

-- Runs a command and returns the figure that it prints as `key`: "tok/s=1234".
local function measure(command, key)
  local text = figure.capture("timeout 400 sh -c " .. quote(command) .. " 2>&1")
  local value = text and text:match(key:gsub("%p", "%%%0") .. "=([%d.]+)")
  return assert(tonumber(value), ("peers: no %s from %s:\n%s"):format(key, command, text or ""))
end

local function peer(program, arguments)
  return ("%s %s %s"):format(quote(python), quote(folder .. "/" .. program), arguments)
end

-- Two processes of one rank each, as torch.distributed wants them; a time limit ends one that is
-- left alone.
local function two_ranks(rank)
  local command = "export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=%d; "
    .. "RANK=1 timeout 300 %s & RANK=0 timeout 300 %s; code=$?; wait; exit $code"
  return command:format(math.random(20000, 30000), rank, rank)
end

local function ours(arguments, script, options)
  return ("%s %s %s --steps %d %s"):format(quote(figure.interpreter()), options or "",
    quote(here .. (script or "gpt.lua")), opt.steps, arguments)
end

local STAGE = "--stages 1 --threads 2 --chunks 8"
local STAGES = "--stages 2 --threads 1 --chunks 8 --schedule 1f1b --checkpoint never"

-- ---- comparisons -----------------------------------------------------------------------------

-- must: a bound for ours / theirs in tokens per second, or in what `key` says. Where theirs are
-- several programs, the faster one counts.
local comparisons = {
  {
    name = "eager", must = 1.1, ours = ours(STAGE),
    theirs = function() return peer("gpt_torch.py", "--threads 2 --steps " .. opt.steps) end,
  },
  {
    name = "pipelining", must = 1.5, ours = ours(STAGES),
    theirs = function() return two_ranks(peer("pipe_torch.py", "1f1b 8 gpt")) end,
  },
  {
    name = "ranks", must = 1.5, ours = ours(STAGES, nil, "--ranks 2"),
    theirs = function() return two_ranks(peer("pipe_torch.py", "1f1b 8 gpt")) end,
  },
  {
    name = "ddp", must = 1.2,
    ours = ours("--replicas 2 --threads 1 --checkpoint never", nil, "--ranks 2"),
    theirs = function()
      local program = quote(here .. "ddp_torch.py")
      return two_ranks(("%s %s %d"):format(quote(python), program, opt.steps))
    end,
  },
  {
    name = "torchgpipe", must = 1.5, ours = ours(STAGES), needs = "torchgpipe",
    theirs = function() return peer("torchgpipe_cpu.py", "2 8 never") end,
  },
  {
    name = "resnet", must = 1.1, key = "img/s", ours = ours("--threads 2", "resnet.lua"),
    theirs = function() return peer("resnet50_torch.py", "--steps " .. opt.steps // 2) end,
    others = function() return peer("resnet50_torch.py", "--cl --steps " .. opt.steps // 2) end,
  },
}

local function compare(c)
  local key = c.key or "tok/s"
  local speeds = figure.alternate(opt.rounds, {
    ours = function() return measure(c.ours, key) end,
    theirs = function()
      local speed = (measure(c.theirs(), key))
      return c.others and math.max(speed, (measure(c.others(), key))) or speed
    end,
  }, { "ours", "theirs" })
  local name = "peers." .. c.name
  figure.print(name .. ".ours", figure.median(speeds.ours), key)
  figure.print(name .. ".theirs", figure.median(speeds.theirs), key)
  figure.print(name, figure.median(figure.ratios(speeds.ours, speeds.theirs)), "x", ">=", c.must)
end

-- Measures theirs alone; ours is engine.action of scripts/bench/engine.
local function engine()
  local times, command = {}, peer("pipe_torch.py", "1f1b 64 empty")
  for round = 1, opt.rounds do times[round] = measure(two_ranks(command), "us/action") end
  figure.print("peers.engine.action.theirs", figure.median(times), "us")
end

-- Why a comparison cannot be made here, or nil.
local function obstacle(c)
  if why or not c.needs then return why end
  if succeeds(("%s -c 'import %s'"):format(quote(python), c.needs)) then return nil end
  return ("%s has no %s"):format(python, c.needs)
end

local function wanted(name) return opt.only == "" or opt.only == name end

for _, c in ipairs(comparisons) do
  local reason = obstacle(c)
  if wanted(c.name) and reason then figure.skip("peers." .. c.name, reason) end
  if wanted(c.name) and not reason then compare(c) end
end
if wanted "engine" and why then figure.skip("peers.engine.action.theirs", why) end
if wanted "engine" and not why then engine() end
