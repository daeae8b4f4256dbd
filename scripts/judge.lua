-- scripts/judge.lua - what the checks share: reading the checkout, and printing faults one a line.
--
-- A check prints each fault and exits 1 where there was one. All run from the root of the checkout.

local judge = {}

local faults = 0

--- Print a fault and count it.
function judge.complain(...)
  print(string.format(...))
  faults = faults + 1
end

--- End the check.
function judge.finish() os.exit(faults == 0) end

--- What a command prints, line by line.
function judge.lines_of(command)
  local list, pipe = {}, assert(io.popen(command))
  for line in pipe:lines() do list[#list + 1] = line end
  pipe:close()
  return list
end

--- The text of a file.
function judge.read(path)
  local file = assert(io.open(path))
  local text = file:read "a"
  file:close()
  return text
end

return judge
