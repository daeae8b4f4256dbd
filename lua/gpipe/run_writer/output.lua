-- lua/gpipe/run_writer/output.lua - a copy of what a script prints, in the run's stdout.txt.
--
-- print and io.write are replaced while a run is open. Output of C code, such as the progress line,
-- is not copied.

local progress = require "gpipe.progress"

local output = {}

local open = {} ---@type table<file*, true> the copies that are written

local plain_print, plain_write = rawget(_G, "print"), io.write

local function copy(text)
  for file in pairs(open) do file:write(text) end
end

local function print_and_copy(...)
  progress.clear()
  plain_print(...)
  local words = table.pack(...)
  for i = 1, words.n do words[i] = tostring(words[i]) end
  copy(table.concat(words, "\t") .. "\n")
end

local function write_and_copy(...)
  if io.output() == io.stdout then
    progress.clear()
    for _, word in ipairs { ... } do
      if type(word) == "string" or type(word) == "number" then copy(tostring(word)) end
    end
  end
  return plain_write(...)
end

--- Start copying.
---@param path string appended to
---@return file*? nil where it cannot be written: the run goes on without the copy
function output.open(path)
  local file = io.open(path, "ab")
  if not file then return nil end
  file:setvbuf "line"
  if not next(open) then
    plain_print, plain_write = rawget(_G, "print"), io.write
    rawset(_G, "print", print_and_copy)
    rawset(io, "write", write_and_copy)
  end
  open[file] = true
  return file
end

--- Stop copying.
---@param file? file*
function output.close(file)
  if not file or not open[file] then return end
  open[file] = nil
  file:close()
  if next(open) then return end
  if rawget(_G, "print") == print_and_copy then rawset(_G, "print", plain_print) end
  if io.write == write_and_copy then rawset(io, "write", plain_write) end
end

return output
