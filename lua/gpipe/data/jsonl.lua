-- lua/gpipe/data/jsonl.lua - a dataset of some fields of a file with a JSON object on each line.

local collate = require "gpipe.data.item.collate"
local core = require "gpipe.core"
local dataset = require "gpipe.data.dataset"
local errors = require "gpipe.errors"
local made = require "gpipe.data.item.made"
local options = require "gpipe.options"

local jsonl = {}

local Source = { gap = 0, apart = true } -- lists of numbers differ in length
Source.__index = Source

-- A single field is both input and target.
function Source:gather(positions)
  local x, y = core.jsonl_read(self.file, positions, #self.fields)
  return x, #self.fields == 1 and x or y
end

function Source:collate(pad, positions)
  local inputs, targets = made.items_of(self, positions, 0, 0)
  return collate.join(inputs, pad), collate.targets(targets, #positions, pad)
end

function Source:describe() return table.concat(self.fields, ", ") end

-- ---- opening -----------------------------------------------------------------------------------

local SPEC = {
  path = { type = "string", required = true },
  fields = { type = "table", required = true },
}

local function check_fields(fields)
  if #fields < 1 or #fields > 2 then
    errors.raise("data.jsonl: %d fields, expected the names of one or two (input, target)", #fields)
  end
  for i, name in ipairs(fields) do
    if type(name) ~= "string" then
      errors.raise("data.jsonl: field %d is %s, expected a name", i, errors.show(name))
    end
  end
  return table.move(fields, 1, #fields, 1, {})
end

---@class gpipe.JsonlOptions
---@field path string
---@field fields string[] one or two names: input and target

--- Open a file with a JSON object on each line. A field has values of one kind in all lines: whole
--- numbers become i64, other numbers f32, true and false bool, lists of numbers i64 or f32 with one
--- more dimension (they have one length within a batch, or `pad` is given), and texts a Lua list of
--- strings. Blank lines are skipped. The file is mapped and all its lines are checked when it is
--- opened; lines are read again when they are used. For texts as ids see gp.data.text with `field`.
--- Errors: wrong options raise; nil, message, code for a file that cannot be read or is damaged,
--- with path:line and byte.
--- ```lua
--- local path = os.tmpname()
--- assert(io.open(path, "wb")):write('{"x": [1, 2.5], "label": 3}\n',
---   '{"x": [0, 1], "label": 4}\n'):close()
--- local d = assert(gp.data.jsonl{path = path, fields = {"x", "label"}})
--- for x, y in d:batches(2) do assert(x.shape[2] == 2 and y[2] == 4) end
--- os.remove(path)
--- ```
---@param opts gpipe.JsonlOptions
---@return gpipe.Dataset?
---@return string? message
---@return string? code
function jsonl.open(opts)
  opts = options.check("data.jsonl", opts, SPEC)
  local fields = check_fields(opts.fields)
  local file, rows, code = core.jsonl_load(opts.path, fields)
  if not file then return nil, rows, code end
  return dataset(setmetatable({ file = file, fields = fields, count = rows }, Source))
end

return jsonl
