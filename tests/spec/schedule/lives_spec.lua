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

  it("count the same versions in the verifier and in the simulator", function()
    for _, name in ipairs { "pipedream", "pipedream_2bw" } do
      for micros = 1, lives.MICROS do
        local good, s = pcall(gp.schedule.build, name, { devices = 4, chunks = micros })
        if good then
          local counted, held = s:versions(), s:simulate { F = 1, B = 2 }.versions
          for device = 1, 4 do assert.are.equal(counted[device - 1], held[device], name .. micros) end
        end
      end
    end
  end)
end)
