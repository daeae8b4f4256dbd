-- tests/support/bits.lua - prints numbers and tensors so that equal lines mean equal bits.

local bits = {}

local function hash(bytes)
  local h = 0xcbf29ce484222325
  for i = 1, #bytes do h = (h ~ bytes:byte(i)) * 0x100000001b3 end
  return ("%016x"):format(h)
end

function bits.say(what, value)
  local text = math.type(value) and ("%.17g"):format(value) or hash(value:contiguous():bytes())
  print(what, text)
end

-- Tensors by name, in the order of the names.
function bits.say_all(what, tensors)
  local names = {}
  for name in pairs(tensors) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do bits.say(what .. " " .. name, tensors[name]) end
end

return bits
