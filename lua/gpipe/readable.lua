-- lua/gpipe/readable.lua - lets our tables of figures, costs and bytes print their contents.
--
-- In every other way they stay plain tables. print(pipe.stats) is what people type first, and
-- "table: 0x55e6" tells them nothing.

local show = require "gpipe.show"

local Readable = { __name = "gpipe.Readable", __tostring = show.contents }

--- Let a table print itself.
--- ```lua
--- local readable = require "gpipe.readable"
--- assert(tostring(readable {live = 3}) == "{live = 3}")
--- ```
---@generic T: table
---@param t T
---@return T t
return function(t) return setmetatable(t, Readable) end
