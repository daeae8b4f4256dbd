-- tests/spec/cli/locale_spec.lua - a script's os.setlocale changes neither files nor what is read
-- from the environment.

local child = dofile "tests/child.lua"

-- A locale with a comma in its numbers, made for the test where the machine can make one.
local folder = os.tmpname()
os.remove(folder)
os.execute("mkdir " .. folder)
local made = os.execute(("localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1"):format(folder))
local with_comma = made and it or pending

-- Returns what the program prints for a script in the locale, with the numbers of `text` in it.
local function run(text, environment)
  environment = environment or {}
  environment.LOCPATH = folder
  local script = child.file([[
    assert(os.setlocale "de_DE.UTF-8")
    assert(("%.1f"):format(0.5) == "0,5")
    local gp = require "gpipe"
    local path = os.tmpname()
    local function content()
      local file = io.open(path)
      local all = file:read "a"
      file:close()
      os.remove(path)
      return all
    end
  ]] .. text)
  local out, err, code = child.run({ script }, { environment = environment })
  os.remove(script)
  assert.equal(0, code, err)
  return out
end

local SCHEDULE = [[
  local s = gp.schedule.build("1f1b", {devices = 3, chunks = 4})
  s:simulate {F = 1.25, B = 2.3}
]]

describe("with a comma in the script's numbers", function()
  teardown(function() os.execute("rm -r " .. folder) end)

  with_comma("a trace is JSON", function()
    local out = run(SCHEDULE .. "assert(s:trace(path)) io.write(content())")
    assert.is_table(dofile("tests/support/json.lua").read(out))
    assert.matches('"ts":%d+%.%d+,', out)
  end)

  with_comma("an SVG picture and a page have points", function()
    local out = run(SCHEDULE .. "assert(s:svg(path)) io.write(content())")
    assert.matches('width="%d+%.%d', out)
    assert.is_nil(out:match '[xywh]%a*="%d+,%d')
    out = run(SCHEDULE .. "assert(s:html(path)) io.write(content())")
    assert.is_nil(out:match '"extent":%d+,%d+,"ops"')
  end)

  with_comma("the script's own numbers keep it afterwards", function()
    assert.equal("0,5\n", run(SCHEDULE .. 'assert(s:svg(path)) print(("%.1f"):format(0.5))'))
  end)

  with_comma("numbers of the environment are read with a point", function()
    local out = run([[
      local pipe = gp.pipeline(gp.nn.Sequential {gp.nn.Linear(2, 2)}, {loss = gp.nn.MSELoss()})
      pipe:step(gp.ones {1, 2}, gp.ones {1, 2})
      print(pipe.stats.seconds >= 0.2)]],
      { GPIPE_FAULT = "op=F,action=sleep:0.2", GPIPE_WATCHDOG = "60.5" })
    assert.equal("true\n", out)
  end)

  with_comma("a CSV file is read with a point", function()
    assert.equal("1.5\n", run [[
      local file = io.open(path, "w")
      file:write "1.5,2\n2.5,3\n"
      file:close()
      local x = assert(gp.data.csv {path = path}):item(1)
      os.remove(path)
      os.setlocale "C"
      print(x:totable()[1])]])
  end)
end)
