-- tests/spec/cli/interrupt_spec.lua - Ctrl-C (SIGINT) stops a script with a Lua error that it can
-- catch.

local child = dofile "tests/child.lua"

-- The thread sanitizer holds signals back until the program blocks; a loop never does.
local with_signals = os.getenv "GPIPE_SANITIZE" ~= "thread" and it or pending

-- Runs text in gpipe-lua, which gets SIGINT after each of the pauses (in seconds).
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
    local out, _, code = interrupted("local p = io.popen('sleep 1') p:read() print('not reached')",
      0.3)
    assert.equal("", out)
    assert.equal(130, code)
  end)
end)

describe("more presses", function()
  with_signals("two get out of a loop of pcalls", function()
    local _, err, code = interrupted("while true do pcall(function() while true do end end) end",
      0.1, 0.3)
    assert.matches("interrupted!", err)
    assert.equal(130, code)
  end)

  with_signals("three end a process that does not answer", function()
    -- A busy machine may deliver two of them as one, so there are some to spare.
    local _, _, code = interrupted("local s = ('a'):rep(30) s:find(('a*'):rep(30) .. 'b')", 0.1,
      0.1, 0.3, 0.5, 1)
    assert.equal(130, code) -- 128 + SIGINT
  end)
end)

describe("a press during an eager product", function()
  local product = "local gp = require 'gpipe' local a = gp.randn {%d, %d} while true do "
    .. "a:matmul(a) end"

  -- A signal handler's frame must not lie on the heap, where the library's stack pointer is.
  for round = 1, 5 do
    with_signals("ends the program as anywhere else, round " .. round, function()
      local _, err, code = interrupted(product:format(1024, 1024), 0.3 + 0.02 * round)
      assert.matches("^gpipe%-lua: interrupted!\n", err)
      assert.equal(130, code)
    end)
  end

  with_signals("is noticed before a long one ends", function()
    local text = "local ok, e = pcall(a.matmul, a, a) io.write(tostring(e), ' ', gp.zeros "
      .. "{2}:sum():item())"
    local out, err, code = interrupted("local gp = require 'gpipe' local a = gp.zeros {8192, 8192} "
      .. text, 1)
    assert.equal("interrupted! 0", out)
    assert.equal("", err)
    assert.equal(0, code)
  end)

  local stock = child.has "lua5.4" and (os.getenv "GPIPE_SANITIZE" or "") == "" and it or pending
  stock("reaches the handler of a host that loaded gpipe.so", function()
    local library = os.getenv "GPIPE_MODULE" or "build/gpipe.so"
    local environment = { LUA_CPATH = library:gsub("gpipe%.so$", "?.so") .. ";;" }
    child.seconds = 10
    for round = 1, 3 do
      local text = child.presses(0.3 + 0.02 * round) .. product:format(1024, 1024)
      local _, err, code = child.run({ "-e", text },
        { program = "lua5.4", environment = environment })
      assert.matches("interrupted!", err)
      assert.equal(1, code)
    end
  end)
end)

describe("coroutines", function()
  it("behave as Lua's own", function()
    local co = coroutine.create(function(a) local b = coroutine.yield(a + 1) error("e" .. b, 0) end)
    assert.same({ true, 2 }, { coroutine.resume(co, 1) })
    assert.same({ false, "e5" }, { coroutine.resume(co, 5) })
    assert.same({ false, "cannot resume dead coroutine" }, { coroutine.resume(co) })
    assert.same({ true }, { coroutine.close(coroutine.create(print)) })
    assert.error_matches(function() coroutine.resume(1) end,
      "bad argument #1 to 'resume' %(thread expected")
    assert.error_matches(function() coroutine.wrap(1) end, "function expected")
    assert.error_matches(function() coroutine.close(coroutine.running()) end,
      "cannot close a running coroutine")
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
