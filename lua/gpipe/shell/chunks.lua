-- lua/gpipe/shell/chunks.lua - what is typed at the prompt as Lua chunks: how they are compiled,
-- and what outlives them.

local mistakes = require "gpipe.shell.mistakes"

local chunks = {}

-- Compiling -------------------------------------------------------------------------------------

-- Remove <close> from a local at the prompt: it would close at the end of its line, but should live
-- as long as the prompt.
local function without_close(text)
  return (text:gsub("^(%s*local%s+[%a_][%w_]*%s*)<%s*close%s*>", "%1"))
end

--- Compile text as an expression, else as statements; its lines have the session's numbers. A
--- statement is added to the text that calls keep_locals (after a ";", so that it is not taken as
--- the arguments of the text before). The values of an expression are the arguments of that call:
--- if the chunk returned them instead, a call would be a tail call, whose errors have no line.
---@param text string
---@return function? chunk is called with chunks.keep_locals
---@return string? message why there is none
function chunks.compile(text)
  local before = ("\n"):rep(mistakes.count())
  local expression = text:gsub("^%s*=", "")
  if load("return " .. expression, "=stdin", "t") then
    local call = before .. "return (...)(" .. expression
    -- The bracket's line is that of errors; it has to be another one only behind a comment.
    return load(call .. ")", "=stdin", "t") or load(call .. "\n)", "=stdin", "t")
  end
  local plain, message = load(before .. text, "=stdin", "t")
  if not plain then return nil, message end
  return load(before .. without_close(text) .. "\n;(...)()", "=stdin", "t") or plain
end

-- What stays ------------------------------------------------------------------------------------

--- Turn the locals of a chunk into globals; the chunk calls this at its end. A closure over such a
--- local keeps its own variable. The values of an expression are passed through.
---@param ... any
---@return any ...
function chunks.keep_locals(...)
  for i = 1, math.huge do
    local name, value = debug.getlocal(2, i)
    if not name then return ... end
    if not name:find("^%(") then rawset(_G, name, value) end
  end
end

local values = 0 -- so far: the number of the last `_n`

--- Keep the values of a chunk: `_` is the first one, `_1`, `_2` ... are those of the session.
---@param results any[] what terminal.call returned, packed
function chunks.keep_values(results)
  if results.n < 2 then return end
  rawset(_G, "_", results[2])
  for i = 2, results.n do
    values = values + 1
    rawset(_G, "_" .. values, results[i])
  end
end

return chunks
