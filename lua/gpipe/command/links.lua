-- lua/gpipe/command/links.lua - `gpipe-lua --ranks N links`: measures the ways between the ranks of
-- a job.

local links = require "gpipe.ranks.links"
local ranks = require "gpipe.ranks"
local words = require "gpipe.command.words"

local command = {
  name = "links", usage = "links",
  about = "Measures latency and bandwidth between every two ranks, as pipelines use them, and "
    .. "prints a table.\n"
    .. "Start it in all ranks: gpipe-lua --ranks 4 links, mpirun -n 4 gpipe-lua links.",
  flags = {
    { "--save FILE", nil, "write what was measured, for gp.cluster {links = FILE}",
      writes = "file" },
    { "--force", false, "replace FILE if it exists" },
  },
}

-- Refuse a file that is there, on rank 0 and before anything is measured; returns the exit code.
local function check(values)
  local there = values.save and not values.force and io.open(values.save, "rb")
  if not there then return 0 end
  there:close()
  return words.fail(command, values.save .. " is there, expected another FILE, or --force")
end

-- Write the file on rank 0; returns the exit code.
local function save(measured, values)
  local good, message = links.save(measured, values.save)
  return good and 0 or words.fail(command, message)
end

return function(given)
  local values, operands = words.read(command, given)
  if not values then return operands end
  if #operands > 0 then
    return words.refuse(command, ("unexpected word '%s', expected none"):format(operands[1]))
  end
  if ranks.ranks() == 1 then
    return words.refuse(command, "there is one rank, expected two or more: gpipe-lua --ranks 2 "
      .. "links")
  end
  local refused = ranks.broadcast(ranks.rank() == 0 and check(values) or 0, 0)
  if refused ~= 0 then return refused end
  local measured = links.measure()
  if ranks.rank() > 0 then return ranks.broadcast(nil, 0) end
  print(measured)
  local code = values.save and save(measured, values) or 0
  return ranks.broadcast(code, 0)
end
