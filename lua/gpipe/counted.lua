-- lua/gpipe/counted.lua - a number with its noun: "1 stage", "2 stages", "8 micro-batches".

---@param number integer
---@param noun string of one
---@return string
local function counted(number, noun)
  local plural = noun:find "[sx]$" or noun:find "[cs]h$"
  return ("%d %s%s"):format(number, noun, number == 1 and "" or plural and "es" or "s")
end

return counted
