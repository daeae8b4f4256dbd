-- tests/spec/cli/gpu_check_spec.lua - scripts/gpu-check without a GPU: which checks run, what a
-- later call takes up, that it ends in time, and what its report says.
--
-- The program of this build is tested, with the plugin's form for the host where a check needs a
-- GPU; checks of a table of the spec's own stand for those that take long.

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

-- Run it in `out`; returns what it printed, the report and the exit code.
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

-- A table of switches: `fine` says little, `hangs` never ends, `fails` cannot open its plugin.
local function write_switches(out)
  os.execute("mkdir -p " .. out)
  local hang = assert(io.open(out .. "/hang.lua", "w"))
  hang:write "while true do end\n"
  hang:close()
  local table = assert(io.open(out .. "/switches", "w"))
  table:write("1 hangs LUA_INIT=@" .. out .. "/hang.lua\n# a comment\n2 fails LUA_INIT=error()\n")
  table:close()
  return "GPIPE_GPU_SWITCHES=" .. out .. "/switches "
end

describe("gpu-check", function()
  local out
  before_each(function() out = temporary() end)
  after_each(function() os.execute("rm -rf " .. out) end)

  it("refuses arguments that mean nothing, and names what it expected", function()
    local cases = {
      ["--only gpt,nonsense"] = "'nonsense', expected some of build facts ceilings ops gpt",
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

  it("lists its checks: speed before tests, those of a part or one alone", function()
    local all = run(out, "--list")
    local last = 0
    for _, name in ipairs { "facts", "ceilings", "ops/attention", "gpt/default",
      "gpt/epilogues%-none", "gpt/tuned", "parts/sm_ids", "gpt/torch%-eager",
      "ops/kernels%-bf16", "specs/streams", "sanitizers/memcheck%-bf16%-own" } do
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
    assert.equal(0, code)
    assert.matches("\ngpu%.gpt%.tokens [%d.]+ tok/s in bf16\n", text)
    assert.matches("| gpt/again | ok, something skipped | %- | %- | %- | %d+ | %x+ |", report)
    assert.matches("## Figures.*gpu%.gpt%.tokens", report)
    local logs = "--only gpt/again,gpt/tuned --continue " .. out .. "/logs.tar.gz"
    assert.matches("^gpt/tuned [^\n]*\n$", (run(out .. "/later", logs .. " --list", settings)))
  end)

  it_runs("kills a check that hangs, and a later call runs it again", function(settings)
    settings = settings .. write_switches(out)
    local text, report, code = run(out, "--only gpt/hangs --minutes 0.3", settings)
    assert.equal(3, code, text)
    assert.matches("| gpt/hangs | cut short", report)
    assert.matches("left for a later call[^\n]*: gpt/hangs\n", text)
    -- The later call continues in another folder, from the logs that were carried.
    local logs = "--only gpt/hangs --continue " .. out .. "/logs.tar.gz"
    assert.matches("^gpt/hangs ", (run(out .. "/later", logs .. " --list", settings)))
  end)

  it_runs("a check that fails is reported with what it printed, and ends with 1", function(settings)
    settings = settings .. write_switches(out)
    local _, report, code = run(out, "--only gpt/fails", settings)
    assert.equal(1, code)
    assert.matches("| gpt/fails | FAILED %(1%)", report)
    assert.matches("## Failures.*### gpt/fails", report)
    -- With the same sources it would fail again; a file that is missing is a first call.
    local again = run(out, "--only gpt/fails --list", settings)
    assert.equal("", again)
    local first = run(out .. "/new", "--only gpt/fails --list --continue /nowhere/logs.tar.gz",
      settings)
    assert.matches("this is the first call", first)
    assert.matches("gpt/fails ", first)
  end)

  it("compares each switch that docs/gpu-log.md expects something of", function()
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
