-- tests/spec/cli/output_spec.lua - the program reports output that it cannot write, also by its
-- exit code.

local child = dofile "tests/child.lua"

local PROGRAM = child.quote(child.program)

local full = io.open("/dev/full", "w") and it or pending

describe("a full disk", function()
  local cases = {
    { "at the end of a short output", "-e 'print(1)'" },
    { "in the middle of a long one", "-e 'for i = 1, 1e5 do print(i) end'" },
    { "before os.exit", "-e 'print(1) os.exit(0)'" },
    { "under --help", "--help" },
    { "under --version", "--version" },
    { "under --list-devices", "--list-devices" },
  }
  for _, case in ipairs(cases) do
    full(case[1] .. " is said, with exit code 1", function()
      local _, err, code = child.shell(("%s %s >/dev/full"):format(PROGRAM, case[2]))
      assert.matches("output", err)
      assert.equal(1, code)
    end)
  end

  full("changes nothing for a script that prints nothing", function()
    local _, err, code = child.shell(PROGRAM .. " -e 'x = 1' >/dev/full")
    assert.equal("", err)
    assert.equal(0, code)
  end)
end)

describe("a pipe whose reader ended", function()
  -- The program's exit code goes to a file, because a pipe's own is that of its last command.
  local function piped(text)
    local kept = os.tmpname()
    local _, err = child.shell(("(%s -e %s; echo $? >%s) | head -n 1"):format(PROGRAM,
      child.quote(text), kept))
    local file = assert(io.open(kept))
    local code = file:read "n"
    file:close()
    os.remove(kept)
    return err, code
  end

  it("ends the program by SIGPIPE, and stderr says so", function()
    local err, code = piped "for i = 1, 1e6 do print(i) end"
    assert.matches("SIGPIPE", err)
    assert.equal(128 + 13, code)
  end)

  it("does not matter where all was read", function()
    local err, code = piped "print(1)"
    assert.equal("", err)
    assert.equal(0, code)
  end)
end)
