-- lua/gpipe/draw/runs/html.lua - runs as one page: curves, configs, memory, timelines.
--
-- The page holds everything that it shows, and its policy forbids it to load anything else. The
-- data are in it as JSON and become texts, never markup.

local data = require "gpipe.draw.runs.data"
local json = require "gpipe.io.json"
local page = require "gpipe.draw.page"

local html = {}

--- The page of runs.
---@param runs gpipe.RunFolder[]
---@param opts {title?: string, live?: boolean} live: it is served, and asks for what is new
---@return string
function html.render(runs, opts)
  return page.render {
    title = opts.title or #runs == 1 and runs[1].name or "Training runs",
    loads = "img-src data:; connect-src 'self'", -- timelines, and what is new of runs
    style = require "gpipe.draw.runs.page.style", body = require "gpipe.draw.runs.page.body",
    data = json.encode(data.of(runs, opts.live == true)),
    script = require "gpipe.draw.page.axis" .. require "gpipe.draw.runs.page.chart"
      .. require "gpipe.draw.runs.page.groups"
      .. require "gpipe.draw.runs.page.tables"
      .. require "gpipe.draw.runs.page.main",
  }
end

return html
