-- tests/spec/schedule/lives_spec.lua - what devices hold under every published schedule is what it
-- was when the golden file was written.
local gp = require "gpipe"
local golden = require "tests.golden.lives"
local lives = require "tests.support.lives"

describe("activations, slots and versions", function()
  for _, name in ipairs(gp.schedule.names()) do
    it("of " .. name .. " are those of the golden file", function()
      for _, devices in ipairs(lives.DEVICES) do
        for _, remat in ipairs(lives.REMAT) do
          local key = ("%s %d %s"):format(name, devices, remat)
          assert.are.equal(golden[key], lives.digests(name, devices, remat), key)
        end
      end
    end)
  end
end)
