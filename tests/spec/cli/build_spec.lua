-- tests/spec/cli/build_spec.lua - scripts/build: when the CUDA plugin is part of a build, and what
-- the script prints on a terminal.
--
-- cmake, ninja and ldconfig are stand-ins that log their calls: nothing is compiled.

local child = dofile "tests/child.lua"

local CMAKE = [[
#!/bin/bash
while [ $# -gt 0 ]; do
  case $1 in
    -S) root=$2; shift ;;
    -B) folder=$2; shift ;;
    -DGPIPE_CUDA=*) cuda=${1#*=} ;;
  esac
  shift
done
echo "configured ${cuda:-as before}" >>"$FAKE_LOG"
[ -n "${cuda:-}" ] || cuda=$(sed -n 's/^GPIPE_CUDA:STRING=//p' "$folder/CMakeCache.txt" 2>/dev/null)
printf 'CMAKE_HOME_DIRECTORY:INTERNAL=%s\nGPIPE_CUDA:STRING=%s\n' "$root" "${cuda:-AUTO}" >"$folder/CMakeCache.txt"
touch "$folder/build.ninja"
]]
local NINJA = [[
#!/bin/bash
echo "built ${*: -1}" >>"$FAKE_LOG"
case " $* " in *' --quiet '*) ;; *) printf '[1/2] Building a\n[2/2] Building b\n' ;; esac
if [ -n "${FAKE_FAILURE:-}" ]; then echo "b.c: error: $FAKE_FAILURE"; exit 1; fi
]]
local LDCONFIG = "#!/bin/sh\n" -- lists no library

local function write(path, text)
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
end

describe("scripts/build", function()
  local folder

  before_each(function()
    folder = os.tmpname()
    os.remove(folder)
    os.execute("mkdir -p " .. folder .. "/bin " .. folder .. "/driver")
    for name, text in pairs { cmake = CMAKE, ninja = NINJA, ldconfig = LDCONFIG } do
      write(folder .. "/bin/" .. name, text)
    end
    write(folder .. "/driver/libcuda.so.1", "")
    os.execute("chmod +x " .. folder .. "/bin/*")
  end)
  after_each(function() os.execute("rm -rf " .. folder) end)

  local function command(arguments, settings)
    return ("env -u LD_LIBRARY_PATH FAKE_LOG=%s/log PATH=%s/bin:$PATH %s scripts/build %s")
      :format(folder, folder, settings or "", (arguments:gsub("FOLDER", folder .. "/build")))
  end

  -- Returns what one call did, as a list in a line.
  local function build(arguments, settings)
    write(folder .. "/log", "")
    local _, err, code = child.shell(command(arguments, settings))
    assert.equal(0, code, err)
    local lines = {}
    for line in io.lines(folder .. "/log") do lines[#lines + 1] = line end
    return table.concat(lines, ", ")
  end

  local function driver() return ("LD_LIBRARY_PATH=%s/driver"):format(folder) end

  it("leaves the plugin out of the product without a driver, and makes it with the tests", function()
    assert.equal("configured LATER, built product", build "--product FOLDER")
    assert.equal("built product", build "--product FOLDER")
    assert.equal("configured AUTO, built all", build "FOLDER")
    assert.equal("built product", build "--product FOLDER")
  end)

  it("makes it with the product once there is a driver", function()
    assert.equal("configured as before, built product", build("--product FOLDER", driver()))
    os.execute("rm -rf " .. folder .. "/build")
    assert.equal("configured LATER, built product", build "--product FOLDER")
    assert.equal("configured AUTO, built product", build("--product FOLDER", driver()))
  end)

  it("makes it when it is asked for", function()
    assert.equal("configured LATER, built product", build "--product FOLDER")
    assert.equal("configured ON, built product", build "--cuda FOLDER")
    assert.equal("built product", build "--cuda FOLDER")
    assert.equal("built product", build "--product FOLDER")
  end)

  it("keeps what options say", function()
    assert.equal("configured OFF, built product", build "--product FOLDER -DGPIPE_CUDA=OFF")
    assert.equal("built product", build("--product FOLDER", driver()))
    assert.equal("built all", build "FOLDER")
  end)

  it("prints nothing but a first line and errors", function()
    local out, err, code = child.shell(command "--product FOLDER")
    assert.equal(0, code)
    assert.equal("", out)
    assert.matches("^building in [^\n]*\n$", err)
    assert.equal("", (select(2, child.shell(command "--product FOLDER"))))
    out, err, code = child.shell(command("--product FOLDER", "FAKE_FAILURE=unclear"))
    assert.equal(1, code)
    assert.equal("", out)
    assert.equal("b.c: error: unclear\n", err)
  end)

  it("counts on a terminal, in one line that disappears at the end", function()
    if not child.has "script" then return pending "no command 'script'" end
    local line = ("script -qec %s /dev/null"):format(child.quote(command "--product FOLDER"))
    local out, _, code = child.shell(line)
    assert.equal(0, code)
    assert.matches("\r\27%[Kconfiguring", out)
    assert.matches("\r\27%[Kbuilding: 1 of 2\r\27%[Kbuilding: 2 of 2\r\27%[K$", out)
    local failed = line:gsub("FAKE_LOG", "FAKE_FAILURE=unclear FAKE_LOG")
    out, _, code = child.shell(failed)
    assert.equal(1, code)
    assert.matches("\r\27%[Kb%.c: error: unclear", out)
  end)

  it("refuses options that it does not know", function()
    local _, err, code = child.shell "scripts/build --all"
    assert.equal(2, code)
    assert.matches("'%-%-all', expected %-%-product or %-%-cuda", err)
  end)
end)
