-- scripts/gpu/ncu.lua CSV - sums up what Nsight Compute measured, kernel by kernel.
--
-- CSV is its raw page in base units: a header, a row of units, a row for each launch. Prints the
-- totals, then the kernels that took longest: seconds, bytes of memory, GB/s and the share of the
-- tensor units, weighted by time.

-- Splits a line of CSV into cells; "" within quotes is one quote.
local function cells_of(line)
  local cells, at = {}, 1
  while at <= #line + 1 do
    if line:sub(at, at) == '"' then
      local stop = at
      repeat
        stop = line:find('"', stop + 1, true) or #line + 1
        local doubled = line:sub(stop + 1, stop + 1) == '"'
        if doubled then stop = stop + 1 end
      until not doubled
      cells[#cells + 1] = line:sub(at + 1, stop - 1):gsub('""', '"')
      at = stop + 2
    else
      local stop = line:find(",", at, true) or #line + 1
      cells[#cells + 1] = line:sub(at, stop - 1)
      at = stop + 1
    end
  end
  return cells
end

-- Finds the columns by their meaning; the tensor units' counter has several names.
local function columns_of(header)
  local columns = {}
  for i, name in ipairs(header) do
    if name == "Kernel Name" then columns.name = i end
    if name:find("gpu__time_duration", 1, true) then columns.time = i end
    if name:find("dram__bytes_read", 1, true) then columns.read = i end
    if name:find("dram__bytes_write", 1, true) then columns.write = i end
    if name:find("pipe_tensor", 1, true) then columns.tensor = i end
  end
  return columns
end

local function number(cells, column)
  return column and tonumber((cells[column]:gsub(",", ""))) or 0
end

-- Sums kernels by name, without their parameters: count, ns, bytes, and ns x share of the tensor
-- units.
local function read(path)
  local kernels, order, columns = {}, {}, nil
  for line in io.lines(path) do
    local cells = line:sub(1, 1) == '"' and cells_of(line) or {}
    if not columns and cells[1] == "ID" then
      columns = columns_of(cells)
    elseif columns and tonumber(cells[1]) then
      local name = cells[columns.name]:gsub("%(.*", ""):gsub("<.*", ""):gsub("^void ", "")
      local k = kernels[name] or { name = name, count = 0, ns = 0, bytes = 0, tensor = 0 }
      if not kernels[name] then kernels[name], order[#order + 1] = k, k end
      local ns = number(cells, columns.time)
      k.count, k.ns = k.count + 1, k.ns + ns
      k.bytes = k.bytes + number(cells, columns.read) + number(cells, columns.write)
      k.tensor = k.tensor + ns * number(cells, columns.tensor)
    end
  end
  return order, columns
end

local kernels, columns = read(arg[1])
if not columns or #kernels == 0 then
  print("gpu.ncu broke: no kernels in its table")
  os.exit(1, true)
end
table.sort(kernels, function(a, b) return a.ns > b.ns end)
local all = { count = 0, ns = 0, bytes = 0, tensor = 0 }
for _, k in ipairs(kernels) do
  for key in pairs(all) do all[key] = all[key] + k[key] end
end
local LINE = "%s %d launches, %.3f ms, %.3f GB, %.0f GB/s, tensor units %s"
local function show(name, k)
  local ns = math.max(k.ns, 1)
  print(LINE:format(name, k.count, k.ns / 1e6, k.bytes / 1e9, k.bytes / ns,
    columns.tensor and ("%.0f%%"):format(k.tensor / ns) or "not counted"))
end
show("gpu.ncu.all", all)
for i = 1, math.min(15, #kernels) do show("gpu.ncu.kernel." .. i, kernels[i]) print("  " .. kernels[i].name) end
