-- scripts/check_comments.lua - comments begin as a sentence does: not with "Of ".
--
-- "Of a share, only its own device's edges are counted" is a topic before a sentence; "When one
-- device is planned alone, count only the edges it touches" says it. Run from the root of the
-- checkout; prints each fault, exits 1.

package.path = "./?.lua;" .. package.path
local judge = require "scripts.judge"

local FILES = "--include=*.c --include=*.h --include=*.cu --include=*.cuh --include=*.inc "
  .. "--include=*.def --include=*.lua"

local found = judge.lines_of(([[grep -rnE '(/\*+|//+|(^|\s)--+\[*) ?Of ' runtime bindings lua ]]
  .. [[tests scripts %s || true]]):format(FILES))
for _, line in ipairs(found) do
  if not line:match "^scripts/check_comments%.lua:" then
    judge.complain("%s: a comment begins with \"Of\", expected a sentence",
      line:match "^[^:]+:%d+" or line)
  end
end
judge.finish()
