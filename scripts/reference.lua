-- scripts/reference.lua FOLDER - write the reference (FOLDER/reference/*.md) and the definitions for
-- editors (FOLDER/meta/*.lua, LuaCATS) from the comments of the sources. Run it in the root of the
-- checkout; the build does (cmake --build build --target reference), and installs both.

local catalog = require "gpipe.shell.catalog"

local folder = assert(arg[1], "reference.lua: the folder to write to is missing")

local function write(name, lines)
  local file <close> = assert(io.open(folder .. "/" .. name, "w"))
  assert(file:write(table.concat(lines, "\n"), "\n"))
end

local function read(path)
  local file <close> = assert(io.open(path))
  return file:read "a"
end

-- ---- types ---------------------------------------------------------------------------------------

-- Call see(block) for each block of comments in the sources: a list of lines.
local function each_block(see)
  for path in io.popen("find lua -name '*.lua' | sort"):lines() do
    local block = {}
    for line in (read(path) .. "\n"):gmatch "(.-)\n" do
      if line:find "^%-%-%-" then block[#block + 1] = line
      elseif #block > 0 then
        if not path:find "meta%.lua$" then see(block) end
        block = {}
      end
    end
  end
end

local declared = {} -- blocks that declare a type
local fields = {}   -- by a type's name: {lines "name type what", base = another type's name}
each_block(function(block)
  local at
  for _, line in ipairs(block) do
    local name, base = line:match "^%-%-%-@class ([%w_.]+):?%s*([%w_.]*)"
    if name then
      fields[name] = fields[name] or { base = base }
      at = fields[name]
    end
    local field = line:match "^%-%-%-@field (.*)$"
    if field and at then at[#at + 1] = field
    elseif at and #at > 0 and not line:find "^%-%-%-%s*@" then -- goes on
      at[#at] = at[#at] .. line:gsub("^%-%-%-", "")
    end
    if (name or line:find "^%-%-%-@alias") and declared[#declared] ~= block then
      declared[#declared + 1] = block
    end
  end
end)

-- ---- pages ---------------------------------------------------------------------------------------

-- `gp.zeros(shape, opts)`: the path, with the arguments of the signature.
local function heading(known)
  local takes = known.entry.signature:match "%b()" or ""
  return ("### `%s%s`"):format(known.path, takes)
end

-- "x gpipe.Tensor what it is" -> "`x` (gpipe.Tensor): what it is"; types may hold blanks in brackets.
local function item(rest)
  local name, after = rest:match "^(%S+)%s*(.*)$"
  local kind = after:match "^fun%b():?%s*%S*" or after:match "^%b{}[%[%]?]*" or after:match "^%S+" or ""
  local text = after:sub(#kind + 1):gsub("^%s+", "")
  return ("- `%s` (`%s`)%s"):format(name, kind, text == "" and "" or ": " .. text)
end

-- The fields of a table of options, below the item that takes one.
local function add_fields(lines, rest)
  local name = rest:match "^%S+%s+(nn%.%w*Options)" or rest:match "^%S+%s+(gpipe%.%w*Options)"
  while fields[name] do
    for _, field in ipairs(fields[name]) do lines[#lines + 1] = "  " .. item(field) end
    name = fields[name].base
  end
end

-- Adds a line of a comment: text, or an item of a list. Lines after an item belong to it.
local function add_entry(lines, known)
  local listing = false
  local function add(text, is_item)
    if is_item ~= listing and lines[#lines] ~= "" then lines[#lines + 1] = "" end
    listing = is_item
    lines[#lines + 1] = text
  end
  lines[#lines + 1] = heading(known)
  lines[#lines + 1] = ""
  for _, line in ipairs(known.entry.comment) do
    local word, rest = line:match "^%-%-%-%s*@(%a+)%s*(.*)$"
    if word == "param" or word == "field" then
      add(item(rest), true)
      add_fields(lines, rest)
    elseif word == "return" then add("- returns `" .. rest .. "`", true)
    elseif not word then
      local text = line:gsub("^%-%-%- ?", "")
      if listing and text ~= "" then lines[#lines] = lines[#lines] .. " " .. text
      else add(text, false)
      end
    end
  end
  lines[#lines + 1] = ""
end

-- The names of each section in their order, sections in the order of their first name.
local function sections_of(names)
  local order, held = {}, {}
  for _, known in ipairs(names) do
    if not held[known.section] then
      held[known.section] = {}
      order[#order + 1] = known.section
    end
    table.insert(held[known.section], known)
  end
  return order, held
end

local function page_lines(page)
  local lines = { "# " .. page.title, "",
    "Made from the comments of the sources by `scripts/reference.lua`; `?name` shows the same at the "
    .. "prompt.", "" }
  local order, held = sections_of(page.names)
  for _, section in ipairs(order) do
    lines[#lines + 1] = "## " .. section
    lines[#lines + 1] = ""
    for _, known in ipairs(held[section]) do
      if known.entry then add_entry(lines, known) end
    end
  end
  return lines
end

local function index_lines(pages)
  local lines = { "# Reference", "" }
  for _, page in ipairs(pages) do
    lines[#lines + 1] = ("## [%s](%s.md)"):format(page.title, page.file)
    lines[#lines + 1] = ""
    local order, held = sections_of(page.names)
    for _, section in ipairs(order) do
      local names = {}
      for i, known in ipairs(held[section]) do names[i] = ("`%s`"):format(known.path) end
      lines[#lines + 1] = ("- %s: %s"):format(section, table.concat(names, " "))
    end
    lines[#lines + 1] = ""
  end
  return lines
end

-- ---- definitions ---------------------------------------------------------------------------------

local OBJECTS = { -- classes whose methods are listed, and the variables that stand for them
  { "nn.Module", "Module" }, { "gpipe.Pipeline", "Pipeline" }, { "gpipe.Optimizer", "Optimizer" },
  { "gpipe.Dataset", "Dataset" }, { "gpipe.Schedule", "Schedule" },
}

local function add_heads(lines)
  table.move({ "gp = {}", "gp.nn = {}", "nn = gp.nn", "nn.init = {}", "gp.optim = {}",
    "optim = gp.optim", "optim.schedule = {}", "gp.data = {}", "gp.schedule = {}" }, 1, 9,
    #lines + 1, lines)
  for _, object in ipairs(OBJECTS) do
    lines[#lines + 1] = ("\n---@class %s\nlocal %s = {}"):format(object[1], object[2])
  end
  lines[#lines + 1] = ""
end

local function add_function(lines, known)
  local takes = known.entry.signature:match "%b()" or "(...)"
  for _, line in ipairs(known.entry.comment) do
    if not line:find "^%-%-%-@class" and not line:find "^%-%-%-@field" then
      lines[#lines + 1] = line
    end
  end
  local name = known.path
  if known.class then name = known.class:match "%w+$" .. ":" .. known.name
  elseif name:find "^nn%.%u" then lines[#lines + 1] = "---@return " .. name
  end
  lines[#lines + 1] = ("function %s%s end\n"):format(name, takes)
end

local function definition_lines(pages)
  local lines = { "---@meta gpipe", "-- Made from the comments of the sources by scripts/reference.lua.",
    "" }
  for _, block in ipairs(declared) do
    table.move(block, 1, #block, #lines + 1, lines)
    lines[#lines + 1] = ""
  end
  add_heads(lines)
  for _, page in ipairs(pages) do
    for _, known in ipairs(page.names) do
      if known.entry and known.class ~= "gpipe.Tensor" then add_function(lines, known) end
    end
  end
  lines[#lines + 1] = "return gp"
  return lines
end

-- Methods of tensors that are written in Lua: the others are in the two texts.
local function method_lines(pages, others)
  local lines = { "---@meta gpipe.Tensor.methods", "---@class gpipe.Tensor", "local Tensor = {}", "" }
  for _, known in ipairs(pages[1].names) do
    local there = others:find(("function Tensor:%s("):format(known.name), 1, true)
    if known.class and known.entry and not there then add_function(lines, known) end
  end
  lines[#lines + 1] = "return Tensor"
  return lines
end

-- ---- all of it -----------------------------------------------------------------------------------

local pages = catalog.pages()
for _, page in ipairs(pages) do write("reference/" .. page.file .. ".md", page_lines(page)) end
write("reference/README.md", index_lines(pages))
local tensor, ops = read "lua/gpipe/tensor/meta.lua", require "gpipe.tensor.stubs"()
write("meta/gpipe.lua", definition_lines(pages))
write("meta/tensor.lua", { (tensor:gsub("%s+$", "")) })
write("meta/ops.lua", { (ops:gsub("%s+$", "")) })
write("meta/methods.lua", method_lines(pages, tensor .. ops))
