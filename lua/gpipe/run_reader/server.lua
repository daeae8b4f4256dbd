-- lua/gpipe/run_reader/server.lua - serves the page of runs to browsers of this machine, and what
-- runs write meanwhile.
--
-- Each open page asks for data.json every two seconds. The JSON is made at most once a second, and
-- less often where there are so many runs that it takes long. Only new records are read for it.

local core = require "gpipe.core"
local data = require "gpipe.draw.runs.data"
local html = require "gpipe.draw.runs.html"
local json = require "gpipe.io.json"

---@class gpipe.RunsServer
---@field port integer
---@field token string the address begins with it, so that other users of this machine cannot guess it
---@field runs gpipe.Runs
---@field socket userdata
---@field made? string the data as JSON
---@field stale_at? number seconds of the clock from which on the data are made anew
local Server = {}
Server.__index = Server

local server = {}

local FRESH = 1 -- least seconds that the same data are served
local SHARE = 4 -- and at least this many times the seconds that making them took
local WAIT = 500 -- milliseconds that one step waits for a request

-- 96 random bits as hexadecimal digits.
local function random_token()
  local file <close> = assert(io.open("/dev/urandom", "rb"))
  return (assert(file:read(12)):gsub(".", function(c) return ("%02x"):format(c:byte()) end))
end

--- Start listening on 127.0.0.1.
---@param runs gpipe.Runs
---@param port integer 0: any that is free
---@return gpipe.RunsServer?
---@return string? message
---@return string? code "io" where the port is taken
function server.open(runs, port)
  local socket, actual, code = core.server_open(port)
  if not socket then return nil, actual, code end
  return setmetatable({ socket = socket, port = actual, runs = runs, token = random_token() },
    Server)
end

--- The address of the page.
---@return string
function Server:address() return ("http://127.0.0.1:%d/%s/"):format(self.port, self.token) end

-- The data as JSON. If the folder is gone, its last contents are served.
local function current_data(self)
  local begin = core.seconds()
  if not self.made or begin >= self.stale_at then
    self.runs:update()
    self.made = json.encode(data.of(self.runs, true))
    local now = core.seconds()
    self.stale_at = now + math.max(FRESH, SHARE * (now - begin))
  end
  return self.made
end

local PAGES = {
  ["/"] = { "text/html; charset=utf-8", function(self)
    self.runs:update()
    return html.render(self.runs, { live = true, title = self.runs.dir })
  end },
  ["/data.json"] = { "application/json", current_data },
}

--- Wait for a request for a while, and answer it.
function Server:step()
  local path, message = core.server_wait(self.socket, WAIT)
  if path == nil then error(message, 0) end
  if not path then return end
  local token, name = path:match "^/(%x+)(/.*)$"
  local page = token == self.token and PAGES[name]
  if not page then
    core.server_answer(self.socket, 404, "text/plain; charset=utf-8", "there is no such page\n")
    return
  end
  core.server_answer(self.socket, 200, page[1], core.plain_numbers(function()
    return page[2](self)
  end))
end

--- Stop listening; connections are closed.
function Server:close() core.server_close(self.socket) end

return server
