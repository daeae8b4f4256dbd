-- tests/spec/runs/extremes_spec.lua - axes and pictures of values at the limits of numbers: drawing
-- ends, and every place and tick is a number within the picture.

local axis = require "gpipe.draw.axis"

local VALUES = {
  0.0, 5e-324, -5e-324, 2.3e-308, -2.3e-308, 1e-300, 1.0, -1.0, 1 + 2 ^ -52, 1e16, 1e16 + 2, -1e16,
  2 ^ 53, 2 ^ 53 + 2, 9.2e18, 1e30, -1e30, 1e300, -1e300, 1e308, -1e308, 1.79e308, -1.79e308,
}

local function check(from, to, opts)
  local made = axis.new(from, to, opts)
  local what = ("%g .. %g, log %s"):format(from, to, tostring(opts.log))
  assert.is_true(#made.ticks <= 100, what)
  for _, tick in ipairs(made.ticks) do
    local place = made:place(tick.at)
    assert.is_true(place >= -0.01 and place <= 1.01, what .. ": tick at " .. tick.at)
    assert.is_true(#tick.text < 24, what .. ": " .. tick.text)
  end
  for _, value in ipairs { from, to, from / 2 + to / 2 } do
    local place = made:place(value)
    assert.is_true(place == place and place >= -1 and place <= 2, what)
  end
end

describe("an axis between any two numbers", function()
  for _, log in ipairs { false, true } do
    it("ends, with ticks inside of it: log " .. tostring(log), function()
      for _, a in ipairs(VALUES) do
        for _, b in ipairs(VALUES) do
          if a <= b then
            for _, most in ipairs { 1, 5, 10 } do
              check(a, b, { most = most, log = log })
              check(a, b, { most = most, log = log, time = true })
            end
          end
        end
      end
    end)
  end

  it("of an ordinary range is what people would choose", function()
    local texts = {}
    for i, tick in ipairs(axis.new(0, 10, { most = 5 }).ticks) do texts[i] = tick.text end
    assert.same({ "0", "2", "4", "6", "8", "10" }, texts)
  end)
end)

describe("plots", function()
  local gp = require "gpipe"

  it("of extreme values end, in a terminal, as SVG and as a page", function()
    local root = os.tmpname()
    os.remove(root)
    local run = gp.run(root .. "/extreme", { quiet = true })
    for step, value in ipairs(VALUES) do run:log(step, { v = value, w = math.abs(value) }) end
    run:finish()
    for _, opts in ipairs { {}, { log = true } } do
      local runs = gp.runs(root)
      assert.is_string(runs:plot({ "v", "w" }, opts))
      assert(runs:svg(root .. "/a.svg", { "v", "w" }, { log = opts.log, force = true }))
    end
    os.execute("rm -rf " .. root)
  end)
end)
