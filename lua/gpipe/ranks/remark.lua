-- lua/gpipe/ranks/remark.lua - a remark on standard error that all ranks of a job would make:
-- rank 0 makes it. Launchers other than ours show what every rank writes there.

local ranks = require "gpipe.ranks"

---@param format string what stands behind "gpipe: ", for string.format
return function(format, ...)
  if ranks.rank() == 0 then io.stderr:write("gpipe: ", format:format(...), "\n") end
end
