-- tests/spec/cli/progress_spec.lua - the words of the progress line.
local progress = require "gpipe.progress"

describe("progress", function()
  it("shortens numbers", function()
    local texts = {}
    for i, n in ipairs { 7, 999, 1234, 5.6e6, 7.8e9 } do texts[i] = progress.short(n) end
    assert.are.same({ "7", "999", "1.2k", "5.6M", "7.8G" }, texts)
  end)

  it("shows times as clocks do", function()
    local texts = {}
    for i, s in ipairs { 0, 59.6, 75, 3600, 3725 } do texts[i] = progress.clock(s) end
    assert.are.same({ "0:00", "1:00", "1:15", "1:00:00", "1:02:05" }, texts)
  end)

  it("takes the mean bubble over the devices in percent", function()
    assert.near(15, progress.bubble { bubble = { 0.1, 0.2 } }, 1e-9)
    assert.is_nil(progress.bubble {})
  end)
end)
