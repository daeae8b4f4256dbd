-- lua/gpipe/models/gpt2/names.lua - the names of GPT-2's parameters in Hugging Face's files, and
-- here.
--
-- A weight of its Conv1D is [in, out], one of our Linear [out, in].

local names = {}

-- Our name, theirs, the shape in the file by names of the configuration, and whether it is
-- transposed.
local TOP = {
  { "embedding.wte.weight", "wte.weight", { "vocabulary", "width" } },
  { "embedding.wpe.weight", "wpe.weight", { "context", "width" } },
  { "head.ln_f.weight", "ln_f.weight", { "width" } },
  { "head.ln_f.bias", "ln_f.bias", { "width" } },
}
local BLOCK = {
  { "ln_1.weight", "ln_1.weight", { "width" } },
  { "ln_1.bias", "ln_1.bias", { "width" } },
  { "attn.qkv.weight", "attn.c_attn.weight", { "width", "triple" }, true },
  { "attn.qkv.bias", "attn.c_attn.bias", { "triple" } },
  { "attn.proj.weight", "attn.c_proj.weight", { "width", "width" }, true },
  { "attn.proj.bias", "attn.c_proj.bias", { "width" } },
  { "ln_2.weight", "ln_2.weight", { "width" } },
  { "ln_2.bias", "ln_2.bias", { "width" } },
  { "fc.weight", "mlp.c_fc.weight", { "width", "inner" }, true },
  { "fc.bias", "mlp.c_fc.bias", { "inner" } },
  { "proj.weight", "mlp.c_proj.weight", { "inner", "width" }, true },
  { "proj.bias", "mlp.c_proj.bias", { "width" } },
}

--- The name of the head's own matrix in files, whether other names have a prefix or not.
names.HEAD = "lm_head.weight"

---@class gpt2.Name
---@field own string of model:parameters()
---@field file string without the prefix
---@field shape integer[] as it lies in the file
---@field transposed? boolean

--- All parameters of a configuration, in the order of the model.
---@param c table
---@return gpt2.Name[]
function names.list(c)
  local list = {}
  local function add(row, own, file)
    local shape = {}
    for i, letter in ipairs(row[3]) do
      shape[i] = letter == "triple" and 3 * c.width or c[letter]
    end
    list[#list + 1] = { own = own .. row[1], file = file .. row[2], shape = shape,
      transposed = row[4] }
  end
  for _, row in ipairs(TOP) do add(row, "", "") end
  for i = 0, c.layers - 1 do
    for _, row in ipairs(BLOCK) do add(row, ("h_%d."):format(i), ("h.%d."):format(i)) end
  end
  if not c.tied then
    add({ "head.out.weight", names.HEAD, { "vocabulary", "width" } }, "", "")
  end
  return list
end

--- A name in a file without its prefix; nil for a buffer that holds no weights.
---@param name string
---@return string?
function names.plain(name)
  local plain = name:gsub("^transformer%.", "")
  local part = plain:match "^h%.%d+%.attn%.(.*)$"
  if part == "bias" or part == "masked_bias" then return nil end
  return plain
end

--- The name of a parameter in files that we write, as transformers writes it.
---@param entry gpt2.Name
---@return string
function names.prefixed(entry)
  return entry.file == names.HEAD and names.HEAD or "transformer." .. entry.file
end

return names
