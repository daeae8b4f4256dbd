-- tests/support/expect.lua - checks that calls fail, and with which text.

local expect = {}

--- Return the error text of a call that must fail.
---@param f function
---@param ... any
---@return string
function expect.failure(f, ...)
  local ok, text = pcall(f, ...)
  assert(not ok, "the call succeeded, expected an error")
  return text
end

--- Check that a call fails with a text that holds `wanted`.
---@param wanted string plain text
---@param f function
---@param ... any
function expect.fails_with(wanted, f, ...)
  local text = expect.failure(f, ...)
  assert(text:find(wanted, 1, true), ("%q lacks %q"):format(text, wanted))
end

return expect
