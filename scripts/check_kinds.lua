-- scripts/check_kinds.lua - no file of engine/ or plan/ asks what kind a device is.
--
-- What differs between devices lies behind the tables of device/lane.h and device/link/link.h: a
-- new kind is a new file there and no branch elsewhere. Run from the root of the checkout; prints
-- each fault, exits 1.

package.path = "./?.lua;" .. package.path
local judge = require "scripts.judge"

-- Lua patterns of what names a kind, and what to use in its place.
local refused = {
  { "is_gpu", "a fact of gp_lane_facts" },
  { "is_cpu", "a fact of gp_lane_facts" },
  { "on_gpu", "a fact of gp_lane_facts" },
  { "gp_gpus?_", "the tables of gp_lane" },
  { "gp_space_gpu", "the tables of gp_lane" },
  { "[.>]api%f[%W]", "the tables of gp_lane" },
  { "gp_link_local%f[%W]", "gp_link_open" },
  { "gp_link_peer%f[%W]", "gp_link_open" },
  { "gp_link_host%f[%W]", "gp_link_open" },
  { '#include "device/gpus', "device/lane.h" },
  { '#include "device/plugin', "device/lane.h" },
  { '#include "device/%w+/lane', "device/lane.h" },
  { '#include "device/[cg]p?u', "device/lane.h" },
}

-- Code without its comments; a comment may speak of GPUs.
local function code_of(path)
  return (judge.read(path):gsub("/%*.-%*/",
    function(comment) return (comment:gsub("[^\n]", "")) end):gsub("//[^\n]*", ""))
end

local function check_file(path)
  local number = 0
  for line in (code_of(path) .. "\n"):gmatch "(.-)\n" do
    number = number + 1
    for _, rule in ipairs(refused) do
      if line:find(rule[1]) then
        judge.complain("%s:%d: asks for the kind of a device (%s), expected %s", path, number,
          rule[1], rule[2])
      end
    end
  end
end

for _, path in ipairs(judge.lines_of "find runtime/engine runtime/plan -name '*.[ch]' | sort") do
  check_file(path)
end
judge.finish()
