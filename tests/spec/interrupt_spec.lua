-- tests/spec/interrupt_spec.lua - Ctrl-C (SIGINT) stops scripts with a Lua error that can be caught.

local child = dofile "tests/child.lua"

-- The thread sanitizer holds signals back until the program blocks; a loop never does.
local with_signals = os.getenv "GPIPE_SANITIZE" ~= "thread" and it or pending

-- Run text in gpipe-lua, which gets SIGINT after each of the pauses (in seconds).
local function interrupted(text, ...)
  local script = child.file(child.presses(...) .. text)
  child.seconds = 10
  local out, err, code = child.run { script }
  os.remove(script)
  return out, err, code
end

describe("one press", function()
  local loops = {
    { "a loop", "while true do end" },
    { "a loop in a coroutine", "coroutine.wrap(function() while true do end end)()" },
    { "a loop around coroutines",
      "local c = coroutine.wrap(function() while true do coroutine.yield() end end) while true do c() end" },
    { "a loop that ignores what resume says",
      "while true do coroutine.resume(coroutine.create(function() while true do end end)) end" },
    { "a loop in a coroutine's closing variable", [[
      local co = coroutine.create(function()
        local _x <close> = setmetatable({}, { __close = function() while true do end end })
        coroutine.yield()
      end)
      coroutine.resume(co) coroutine.close(co)]] },
  }
  for _, loop in ipairs(loops) do
    with_signals("stops " .. loop[1] .. " with code 130", function()
      local _, err, code = interrupted(loop[2], 0.3)
      assert.matches("^gpipe%-lua: interrupted!\nstack traceback:\n", err)
      assert.equal(130, code)
    end)
  end

  with_signals("runs closing variables first", function()
    local out, _, code = interrupted(
      "local _x <close> = setmetatable({}, { __close = function() print('closed') end }) while true do end", 0.3)
    assert.equal("closed\n", out)
    assert.equal(130, code)
  end)

  with_signals("is an error that pcall catches; the script goes on", function()
    local out, err, code = interrupted([[
      local ok, e = pcall(function() while true do end end)
      print(ok, tostring(e), e.code)]], 0.3)
    assert.equal("false\tinterrupted!\tinterrupt\n", out)
    assert.equal("", err)
    assert.equal(0, code)
  end)

  with_signals("gives a script's own hook back", function()
    local out = interrupted([[
      local function hook() end
      debug.sethook(hook, "c")
      pcall(function() while true do end end)
      print(debug.gethook() == hook)]], 0.3)
    assert.equal("true\n", out)
  end)

  with_signals("ends a wait for input", function()
    local out, _, code = interrupted("local p = io.popen('sleep 1') p:read() print('not reached')", 0.3)
    assert.equal("", out)
    assert.equal(130, code)
  end)
end)

describe("more presses", function()
  with_signals("two get out of a loop of pcalls", function()
    local _, err, code = interrupted("while true do pcall(function() while true do end end) end", 0.1, 0.3)
    assert.matches("interrupted!", err)
    assert.equal(130, code)
  end)

  with_signals("three end a process that does not answer", function()
    local _, _, code = interrupted("local s = ('a'):rep(30) s:find(('a*'):rep(30) .. 'b')", 0.1, 0.1, 0.3)
    assert.equal(130, code) -- 128 + SIGINT
  end)
end)

describe("coroutines", function()
  it("behave as Lua's own", function()
    local co = coroutine.create(function(a) local b = coroutine.yield(a + 1) error("e" .. b, 0) end)
    assert.same({ true, 2 }, { coroutine.resume(co, 1) })
    assert.same({ false, "e5" }, { coroutine.resume(co, 5) })
    assert.same({ false, "cannot resume dead coroutine" }, { coroutine.resume(co) })
    assert.same({ true }, { coroutine.close(coroutine.create(print)) })
    assert.error_matches(function() coroutine.resume(1) end, "bad argument #1 to 'resume' %(thread expected")
    assert.error_matches(function() coroutine.wrap(1) end, "function expected")
    assert.error_matches(function() coroutine.close(coroutine.running()) end, "cannot close a running coroutine")
  end)

  it("made by wrap close their variables and add the caller's position to errors", function()
    local closed = false
    local f = coroutine.wrap(function()
      local _x <close> = setmetatable({}, { __close = function() closed = true end })
      error("inside")
    end)
    local ok, message = pcall(function() f() end)
    assert.is_false(ok)
    assert.is_true(closed)
    assert.matches("interrupt_spec%.lua:%d+: .*interrupt_spec%.lua:%d+: inside$", message)
    assert.error_matches(f, "cannot resume dead coroutine")
  end)
end)
