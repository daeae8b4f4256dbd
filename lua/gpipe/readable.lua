-- lua/gpipe/readable.lua - tables of ours that print their contents: figures, costs, bytes.
--
-- They stay plain tables in every other way; print(pipe.stats) is what people type first, and
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
