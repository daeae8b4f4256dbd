-- tests/support/doc_blocks.lua - the blocks of code of a page, for specs that run them.

local doc_blocks = {}

--- Return the texts of a page's blocks in a language, in their order.
---@param path string
---@param language string as it stands behind the three backquotes
---@return string[]
function doc_blocks.of(path, language)
  local found, open = {}, nil
  for line in io.lines(path) do
    if line == "```" .. language then
      open = {}
    elseif line == "```" and open then
      found[#found + 1] = table.concat(open, "\n")
      open = nil
    elseif open then
      open[#open + 1] = line
    end
  end
  return found
end

return doc_blocks
