-- tests/golden/lives_of_schedules.lua - write tests/golden/lives.lua:
--   gpipe-lua tests/golden/lives_of_schedules.lua > tests/golden/lives.lua
--
-- Written once with the program of commit fc035c4; a change that means to keep what schedules hold
-- is compared with it and never writes it anew.
package.path = "./?.lua;" .. package.path
local gp = require "gpipe"
local lives = require "tests.support.lives"

print "-- tests/golden/lives.lua - see lives_of_schedules.lua, which wrote this file."
print "return {"
for _, name in ipairs(gp.schedule.names()) do
  for _, devices in ipairs(lives.DEVICES) do
    for _, remat in ipairs(lives.REMAT) do
      local digests = lives.digests(name, devices, remat):gsub("(%S+ %S+ %S+ %S+ %S+ %S+ %S+ %S+ )",
        "%1\\z\n    ")
      print(("  [%q] =\n    \"%s\","):format(("%s %d %s"):format(name, devices, remat), digests))
    end
  end
end
print "}"
