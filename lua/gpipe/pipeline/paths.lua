-- lua/gpipe/pipeline/paths.lua - `pipe:describe()`: the devices of a pipeline, and the path that
-- computes each kind of work.
--
-- Libraries may refuse a shape, or be missing. The work is then slower, never wrong, and this
-- report says so. Paths are chosen when a batch shape is planned, so a pipeline that has planned
-- nothing has none.

local core = require "gpipe.core"
local counted = require "gpipe.counted"
local machine = require "gpipe.machine"
local ranks = require "gpipe.ranks"

---@class gpipe.Path
---@field kind string "attention", "product", "convolution"
---@field shape string
---@field path string "cuDNN", "own kernels, tensor cores"
---@field why? string why a faster path was not taken
---@field count integer how often it was chosen

---@class gpipe.Graphs
---@field count integer captured graphs that a step of the last plan launches; 0 on a CPU
---@field tasks integer the tasks that are in them

---@class gpipe.Description
---@field text string all of it, as tostring gives it
---@field devices {name: string, rank?: integer, paths: gpipe.Path[], graphs: gpipe.Graphs}[]
---@field libraries gpipe.Library[] the libraries of GPUs; empty if the pipeline is on CPUs only

local function path_line(path)
  local why = path.why and ("; %s"):format(path.why) or ""
  return ("    %d x %s %s: %s%s"):format(path.count, path.kind, path.shape, path.path, why)
end

-- Returns ": 3 graphs for 17 tasks", or what stands in its place.
local function device_end(device)
  local graphs = device.graphs
  if device.rank and device.rank ~= ranks.rank() then
    return (": described by rank %d, which drives it"):format(device.rank)
  end
  if graphs.count == 0 then return #device.paths == 0 and ": nothing planned yet" or ":" end
  return (": %s for %s"):format(counted(graphs.count, "graph"), counted(graphs.tasks, "task"))
end

local function text_of(header, description)
  local lines = { header }
  for d, device in ipairs(description.devices) do
    lines[#lines + 1] = ("  device %d (%s)%s"):format(d - 1, device.name, device_end(device))
    for _, path in ipairs(device.paths) do lines[#lines + 1] = path_line(path) end
  end
  for _, library in ipairs(description.libraries) do
    lines[#lines + 1] = "  " .. machine.library_text(library)
  end
  return table.concat(lines, "\n")
end

local meta = { __name = "gpipe.Description", __tostring = function(self) return self.text end }

--- The paths of a device. On CPU devices, products of bf16 have their own paths.
---@param pipe table
---@param d integer
---@return table[]
local function paths_of(pipe, d)
  local list = pipe.core:paths(d - 1)
  if pipe.devices[d].kind ~= "cpu" or pipe.precision.half ~= "bf16" then return list end
  local path, lacks = core.bf16_path()
  for _, row in ipairs(list) do
    if row.kind == "product" then row.path, row.why = path, lacks end
  end
  return list
end

--- Describe what the pipeline runs on: its stages, and for each device the path of each kind of
--- work (attention, products), how often it is taken, and why a faster one is not; on a GPU also
--- how many captured graphs a step launches; then the libraries of GPUs. The result is a table that
--- prints as text.
--- ```lua
--- local pipe <close> = gp.pipeline(nn.Sequential {nn.Linear(4, 4)}, {loss = nn.MSELoss()})
--- pipe:step(gp.ones {8, 4}, gp.ones {8, 4})
--- print(pipe:describe())
--- assert(pipe:describe().devices[1].paths[1].kind == "product")
--- ```
---@param pipe table
---@param header string the pipeline as text
---@return gpipe.Description
local function describe(pipe, header)
  local description, on_gpu = { devices = {}, libraries = {} }, false
  for d, device in ipairs(pipe.devices) do
    local paths = paths_of(pipe, d)
    local graphs = pipe.core:graphs(d - 1)
    description.devices[d] = {
      name = device.name, rank = device.rank, paths = paths, graphs = graphs,
    }
    on_gpu = on_gpu or device.kind == "cuda"
  end
  if on_gpu then description.libraries = machine.libraries() end
  description.text = text_of(header, description)
  return setmetatable(description, meta)
end

return { describe = describe, of = paths_of }
