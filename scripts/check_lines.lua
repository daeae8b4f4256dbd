-- scripts/check_lines.lua - checks that lines, comments too, have at most 100 columns and subjects
-- of commits at most 72.
--
-- A column is a character: a dash of three bytes counts once. Subjects are those of the commits
-- since the rule was made. Run from the root of the checkout; prints each fault, exits 1.

local COLUMNS, SUBJECT = 100, 72
local RULE_MADE = "2026-11-22 12:00" -- older commits stay as they are

package.path = "./?.lua;" .. package.path
local judge = require "scripts.judge"
local complain, lines_of = judge.complain, judge.lines_of

-- Checks all C, and the Lua of the product and its examples. Rows of data in specs have luacheck's
-- 120, an annotation is one line, and a page is text of another language.
local function is_checked(path)
  if path:find "^lua/gpipe/.*/page/" then return false end
  return path:find "%.[ch]$" or path:find "%.cuh?$" or path:find "%.inc$" or path:find "%.def$"
    or path:find "^lua/" or path:find "^examples/.*%.lua$"
end

local function check_file(path)
  local number = 0
  for line in io.lines(path) do
    number = number + 1
    local columns = utf8.len(line) or #line
    if columns > COLUMNS and not line:find "^%-%-%-@" then
      complain("%s:%d: %d columns, expected at most %d", path, number, columns, COLUMNS)
    end
  end
end

for _, path in ipairs(lines_of "git ls-files runtime bindings lua scripts tests examples") do
  if is_checked(path) then check_file(path) end
end

local log = ("git log --no-merges --since='%s' --format='%%h %%s'"):format(RULE_MADE)
for _, line in ipairs(lines_of(log)) do
  local commit, subject = line:match "^(%x+) (.*)$"
  if utf8.len(subject) > SUBJECT then
    complain("commit %s: a subject of %d columns, expected at most %d", commit, utf8.len(subject),
      SUBJECT)
  end
end

judge.finish()
