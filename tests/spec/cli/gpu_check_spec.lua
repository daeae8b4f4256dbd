-- tests/spec/cli/gpu_check_spec.lua - scripts/gpu-check without a GPU: which checks run, what a
-- later call continues, that it ends in time, and what its report says.
--
-- The program of this build is tested, with the plugin compiled for the host where a check needs a
-- GPU. A table of checks in this spec replaces those that take long.

local child = dofile "tests/child.lua"

local folder = child.program:match "^(.*)/[^/]*$"
local plugin = folder .. "/libgpipe_cuda_host.so"
local environment = "CUDA_VISIBLE_DEVICES= GPIPE_GPU_PACK=/nowhere "

local function read(path)
  local file = io.open(path)
  if not file then return "" end
  local text = file:read "a"
  file:close()
  return text
end

-- Runs the script in `out`; returns what it printed, the report and the exit code.
local function run(out, arguments, settings)
  local command = "env %s%s scripts/gpu-check --built %s --rehearse --out %s %s"
  local text, err, code = child.shell(command:format(environment, settings or "", child.quote(folder),
    out, arguments))
  return text .. err, read(out .. "/report.md"), code
end

local function temporary()
  local name = os.tmpname()
  os.remove(name)
  return name
end

-- Planted faults by the name of a switch: the code runs at the start of the program.
local PLANTED = {
  hangs = "while true do end",
  fails = "error()",
  -- The precision is not available, which once fell back to f32 silently.
  precision = [[local gp = require "gpipe"
    local make = gp.pipeline
    gp.pipeline = function(model, o)
      if o.precision == "bf16" then error("bf16: planted") end
      return make(model, o)
    end]],
  -- The numbers are wrong, while the speed is as usual.
  wrong = [[package.preload.gpu_losses = function()
      return { ["2 layers, width 64, 2 heads, context 32, vocabulary 300"] = { 5.9, 5.8, 5.7 } }
    end]],
  -- There is no memory, which says nothing about the program.
  machine = [[local errors, gp = require "gpipe.errors", require "gpipe"
    gp.pipeline = function() errors.raise_as("memory", "out of memory: planted") end]],
}

-- Writes a table of switches, one for each planted fault.
local function write_switches(out)
  os.execute("mkdir -p " .. out)
  local lines = { "# a comment" }
  for name, code in pairs(PLANTED) do
    local path = ("%s/%s.lua"):format(out, name)
    local file = assert(io.open(path, "w"))
    file:write(code)
    file:close()
    lines[#lines + 1] = ("1 %s LUA_INIT=@%s"):format(name, path)
  end
  local table_file = assert(io.open(out .. "/switches", "w"))
  table_file:write(table.concat(lines, "\n"), "\n")
  table_file:close()
  return "GPIPE_GPU_SWITCHES=" .. out .. "/switches "
end

-- Writes a tool that the checks look for, as a shell script in a folder of its own.
local function write_tool(out, name, script)
  os.execute("mkdir -p " .. out .. "/bin")
  local path = out .. "/bin/" .. name
  local file = assert(io.open(path, "w"))
  file:write("#!/bin/bash\n", script)
  file:close()
  os.execute("chmod +x " .. path)
  return ("PATH=%s/bin:%s "):format(out, os.getenv "PATH")
end

describe("gpu-check", function()
  local out
  before_each(function() out = temporary() end)
  after_each(function() os.execute("rm -rf " .. out) end)

  it("refuses arguments that mean nothing, and names what it expected", function()
    local cases = {
      ["--only gpt,nonsense"] = "'nonsense', expected some of build facts truth ceilings",
      ["--only ,"] = "expected some of build",
      ["--minutes soon"] = "'soon', expected a number", ["--minutes 0"] = "more than 0",
      ["--only"] = "--only wants a value", ["--all"] = "'--all'",
      ["--built /nowhere"] = "no gpipe-lua in /nowhere",
    }
    for arguments, wanted in pairs(cases) do
      local _, err, code = child.shell("scripts/gpu-check --out " .. out .. " " .. arguments)
      assert.equal(2, code, arguments)
      assert.truthy(err:find(wanted, 1, true), err)
    end
  end)

  it("lists its checks in order, right numbers first, or those of a part, or one", function()
    local all = run(out, "--list")
    local last = 0
    for _, name in ipairs { "facts", "truth/touch", "truth/replay", "gpt/default", "ceilings",
      "ops/shapes", "ops/attention", "ops/ncu", "gpt/epilogues%-none", "gpt/piece%-32",
      "gpt/torch%-eager", "gpt/torch%-best", "gpt/again", "ops/kernels%-bf16", "parts/2",
      "sanitizers/memcheck%-bf16", "sanitizers/memcheck%-bf16%-own", "specs/streams" } do
      local at = all:find("\n" .. name .. " ") or all:find("^" .. name .. " ")
      assert.truthy(at and at >= last, name)
      last = at
    end
    local parts = run(out, "--list --only parts,gpt/again")
    assert.matches("parts/2 .*", parts)
    assert.matches("gpt/again ", parts)
    assert.falsy(parts:find "gpt/default")
  end)

  it("lists what is too slow for rehearsals", function()
    local text = child.shell("scripts/gpu-check --list --only conv --out " .. out)
    assert.matches("conv/exact .*conv/resnet%-bf16 .*conv/resnet%-bf16%-own ", text)
  end)

  it("without a GPU says so and ends with 77", function()
    local text, report, code = run(out, "--only gpt", "GPIPE_CUDA_PLUGIN=/nowhere.so ")
    assert.equal(77, code)
    assert.matches("no GPU: not available", text)
    assert.matches("no GPU: not available", report)
  end)

  local function it_runs(name, work)
    it(name, function()
      local there = io.open(plugin)
      if not there then return pending "no headers of CUDA in this build" end
      there:close()
      if os.getenv "GPIPE_SANITIZE" == "thread" then return pending "takes minutes" end
      work("GPIPE_CUDA_PLUGIN=" .. child.quote(plugin) .. " ")
    end)
  end

  it_runs("prints figures as they come, and reports them", function(settings)
    local text, report, code = run(out, "--only gpt/again", settings)
    assert.equal(0, code, text)
    assert.matches("\ngpu%.gpt%.tokens [%d.]+ tok/s in bf16\n", text)
    assert.matches("\ngpu%.gpt%.loss%.1 [%d.e-]+ relative: 5%.74%d+ nats, 5%.7406%d on a CPU", text)
    assert.matches("\ngpu%.gpt%.loss%.6 ", text)
    assert.matches("\ngpu%.gpt%.paths%.product%.%w+ %d+ shapes", text)
    assert.matches("| gpt/again | ok, something skipped | %- | %- | %- | %d+ | %x+ | 1 |", report)
    assert.matches("## Figures.*gpu%.gpt%.tokens", report)
    local logs = "--only gpt/again,gpt/fuse-off --continue " .. out .. "/logs.tar.gz"
    assert.matches("^gpt/fuse%-off [^\n]*\n$", (run(out .. "/later", logs .. " --list", settings)))
  end)

  it_runs("kills a check that hangs, and a later call runs it again", function(settings)
    settings = settings .. write_switches(out)
    local text, report, code = run(out, "--only gpt/hangs --minutes 0.3", settings)
    assert.equal(3, code, text)
    assert.matches("| gpt/hangs | cut short", report)
    assert.matches("left for a later call[^\n]*: gpt/hangs\n", text)
    -- The later call continues in another folder, from the logs that were copied there.
    local logs = "--only gpt/hangs --continue " .. out .. "/logs.tar.gz"
    assert.matches("^gpt/hangs ", (run(out .. "/later", logs .. " --list", settings)))
  end)

  it_runs("a check that fails is reported with what it printed, and ends with 1", function(settings)
    settings = settings .. write_switches(out)
    local _, report, code = run(out, "--only gpt/fails", settings)
    assert.equal(1, code)
    assert.matches("| gpt/fails | FAILED %(1%)", report)
    assert.matches("## Failures.*### gpt/fails", report)
    -- A call with a missing file is a first call.
    local first = run(out .. "/new", "--only gpt/fails --list --continue /nowhere/logs.tar.gz",
      settings)
    assert.matches("this is the first call", first)
    assert.matches("gpt/fails ", first)
  end)

  it_runs("a check that failed once runs first, one that failed twice last", function(settings)
    settings = settings .. write_switches(out)
    local both = "--only gpt/wrong,truth/replay,gpt/again"
    run(out, "--only gpt/wrong", settings)
    assert.matches("^gpt/wrong [^\n]*\ntruth/replay [^\n]*\ngpt/again", (run(out, both .. " --list", settings)))
    assert.matches("^truth/replay [^\n]*\ngpt/again [^\n]*\n$",
      (run(out, both .. " --list --skip-failed", settings)))
    run(out, "--only gpt/wrong", settings)
    local listed = run(out, both .. " --list", settings)
    assert.matches("^truth/replay [^\n]*\ngpt/again [^\n]*\ngpt/wrong", listed)
    assert.matches("| gpt/wrong | FAILED %(1%)[^\n]*| 2 |\n", read(out .. "/report.md"))
  end)

  it_runs("a missing precision fails, and no other is trained in its place", function(settings)
    local text, report, code = run(out, "--only gpt/precision", settings .. write_switches(out))
    assert.equal(1, code)
    assert.matches("gpu%.gpt broke: [^\n]*bf16: planted", text)
    assert.falsy(text:find "gpu.gpt.tokens")
    assert.matches("| gpt/precision | FAILED %(1%)", report)
  end)

  it_runs("losses that are not those of a CPU fail, however fast", function(settings)
    local text, report, code = run(out, "--only gpt/wrong", settings .. write_switches(out))
    assert.equal(1, code)
    assert.matches("gpu%.gpt%.loss%.1 [^\n]*must <= 0%.0025: short", text)
    assert.matches("gpu%.gpt broke: the loss of step 3 is", text)
    assert.matches("| gpt/wrong | FAILED %(1%)", report)
  end)

  it_runs("products of a precision that break fail, and the others are measured", function(settings)
    local text, _, code = run(out, "--only ceilings", settings .. "LUA_INIT=" .. child.quote([[
      local gp = require "gpipe"
      local make = gp.pipeline
      gp.pipeline = function(model, o)
        if o.precision == "f16" then error("f16: planted") end
        return make(model, o)
      end]]) .. " ")
    assert.equal(1, code)
    assert.matches("gpu%.product%.bf16 %d", text)
    assert.matches("gpu%.product%.f16 broke: [^\n]*f16: planted", text)
    assert.matches("gpu%.product%.f32 %d", text)
  end)

  it_runs("replayed steps that differ from launched ones fail", function(settings)
    local good, _, code = run(out, "--only truth/replay", settings)
    assert.equal(0, code, good)
    assert.matches("gpu%.replay%.different 0 of 6 losses and %d+ tensors", good)
    local text
    text, _, code = run(out .. "/planted", "--only truth/replay",
      settings .. "LUA_INIT='require([[gpipe]]).equal = function() return false end' ")
    assert.equal(1, code)
    assert.matches("gpu%.replay%.different %d%d of", text)
    assert.matches("gpu%.replay broke: replayed steps differ in ", text)
  end)

  it_runs("a fault of the machine is INFRA, which never counts as done", function(settings)
    settings = settings .. write_switches(out)
    local _, report, code = run(out, "--only gpt/machine", settings)
    assert.equal(1, code)
    assert.matches("| gpt/machine | INFRA: the machine", report)
    assert.matches("^gpt/machine ", (run(out, "--only gpt/machine --list --skip-failed", settings)))
  end)

  it_runs("a GPU that does not answer after a failure makes it INFRA", function(settings)
    settings = settings .. write_switches(out) .. "GPIPE_GPU_ANSWER=0.001 "
    local _, report = run(out, "--only gpt/fails", settings)
    assert.matches("| gpt/fails | INFRA: the GPU does not answer", report)
  end)

  it_runs("prints clocks and power before and after each check", function(settings)
    settings = settings .. write_tool(out, "nvidia-smi", 'case $* in *clocks_event*) '
      .. 'echo "1980 MHz, 2619 MHz, 120.5 W, 35, 0x4";; *) exit 1;; esac\n')
    local text, report = run(out, "--only gpt/again", settings)
    for _, when in ipairs { "before", "after" } do
      assert.matches("state%." .. when .. " 1980 MHz[^\n]*0x4", text)
      assert.matches("state%." .. when .. " 1980 MHz[^\n]*0x4", report)
    end
  end)

  it_runs("sums up what Nsight Compute counts, or says that it is missing", function(settings)
    local text = run(out, "--only ops/ncu", settings)
    assert.matches("gpu%.ncu skipped: ncu is not here", text)
    -- The stand-in writes what the tool would write; the program takes a step under it.
    settings = settings .. write_tool(out, "ncu", [=[
      case $* in *--query-metrics*) echo "sm__pipe_tensor_cycles_active  cycles"; exit;; esac
      while [ "$1" != --log-file ]; do [ "$1" != --metrics ] || metrics=$2; shift; done
      csv=$2; shift 2
      "$@" || exit
      case $metrics in *sm__pipe_tensor_cycles_active.avg*) ;; *) exit 9;; esac
      cat >"$csv" <<'END'
==PROF== Connected
"ID","Kernel Name","dram__bytes_read.sum","dram__bytes_write.sum","gpu__time_duration.sum","sm__pipe_tensor"
"","","byte","byte","ns","%"
"0","void add<float>(float *, int)","1,000,000","500,000","1,000","0"
"1","product(a, b)","2000000","500000","3000","80"
END
    ]=])
    local counted, _, code = run(out .. "/tool", "--only ops/ncu", settings)
    assert.equal(0, code, counted)
    assert.matches("gpu%.ncu%.all 2 launches, 0%.004 ms, 0%.004 GB, 1000 GB/s, tensor units 60%%", counted)
    assert.matches("gpu%.ncu%.kernel%.1 1 launches, 0%.003 ms", counted)
  end)

  it("compares each switch of which docs/gpu-log.md expects something", function()
    local switches, expected = read "scripts/gpu/switches" .. read "scripts/gpu/checks.sh", 0
    local section = read("docs/gpu-log.md"):match "\n## Expected, to be confirmed\n(.*)"
    for row in section:gmatch "\n(| [^\n]*)" do
      local switch = row:match "^|[^|]*|([^|]*)|"
      for setting in switch:gmatch "`(GPIPE_[%u_]+=[^`]*)`" do
        expected = expected + 1
        local line = switches:gsub("\n", " \n")
        assert.truthy(line:find(" " .. setting .. " ", 1, true), setting)
      end
    end
    assert.truthy(expected > 0)
  end)

  it("compares only variables that the documentation lists", function()
    local documented = read "docs/cuda.md"
    for line in io.lines "scripts/gpu/switches" do
      for variable in line:gsub("#.*", ""):gmatch "([%u_]+)=" do
        assert.truthy(documented:find("`" .. variable, 1, true), variable)
      end
    end
  end)
end)
