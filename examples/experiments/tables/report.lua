-- examples/experiments/tables/report.lua - tables of what was published beside what was found here.
local report = {}

-- Sets numbers to the right in `format` and words to the left; an unknown value is a dash.
local function cell(column, value)
  if value == nil then return "-" end
  if type(value) == "number" then return (column.format or "%.3f"):format(value) end
  return tostring(value)
end

local function line(texts, columns)
  local out = {}
  for i, text in ipairs(texts) do
    local pad = (" "):rep(columns[i].width - #text)
    out[i] = columns[i].left and text .. pad or pad .. text
  end
  return (table.concat(out, "  "):gsub("%s+$", ""))
end

--- Print rows under a title.
---@param title string
---@param columns {[1]: string, key: string, format: string?, left: boolean?}[]
---@param rows table[]
function report.print(title, columns, rows)
  local heads, texts = {}, {}
  for i, column in ipairs(columns) do
    heads[i], column.width = column[1], #column[1]
  end
  for r, row in ipairs(rows) do
    texts[r] = {}
    for i, column in ipairs(columns) do
      texts[r][i] = cell(column, row[column.key])
      column.width = math.max(column.width, #texts[r][i])
    end
  end
  print("\n" .. title)
  print(line(heads, columns))
  for _, row in ipairs(texts) do print(line(row, columns)) end
end

--- Set each row's `into` to its `key` divided by that of the first row that has one.
function report.ratio(rows, key, into)
  local first
  for _, row in ipairs(rows) do
    first = first or row[key]
    if first and row[key] then row[into] = row[key] / first end
  end
end

--- Print a line on standard error while a long measurement runs.
function report.say(text, ...) io.stderr:write(text:format(...), "\n") end

return report
