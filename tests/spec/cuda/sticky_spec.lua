-- tests/spec/cuda/sticky_spec.lua - after which errors of CUDA a GPU counts as lost: those of which
-- the toolkit's header says that every further call fails.

local HEADER = (os.getenv "CUDA_HOME" or "/usr/local/cuda") .. "/include/driver_types.h"

local function read(path)
  local file = io.open(path)
  if not file then return nil end
  local text = file:read "a"
  file:close()
  return text
end

-- Returns {name = number} of the errors whose comment in the header matches one of the words.
local function errors_of(header, words)
  local found = {}
  for comment, name, number in header:gmatch "/%*%*(.-)%*/%s*([%w_]*)%s*=?%s*(%d*)" do
    for _, word in ipairs(name:find "^cudaError" and words or {}) do
      if comment:find(word, 1, true) then found[name] = number end
    end
  end
  return found
end

-- Returns the text of the cases in which error.c counts a GPU as lost, with numbers for the names
-- that older toolkits lack.
local function cases()
  local text = read "runtime/device/cuda/error.c"
  local numbers = {}
  for name, number in text:match "enum {([^}]*)}; *[^\n]*\n\nbool gp_cuda_is_sticky":gmatch "([%u_]+) = (%d+)" do
    numbers[name] = number
  end
  local list = text:match "bool gp_cuda_is_sticky.-return true"
  return (list:gsub("case ([%u_]+):", function(name) return "case " .. numbers[name] .. ":" end))
end

describe("A GPU counts as lost", function()
  local header = read(HEADER)

  it("after each error that ends a process, as the header says", function()
    if not header then return pending "no CUDA toolkit" end
    local known, count = cases(), 0
    for name, number in pairs(errors_of(header, { "must be terminated", "inconsistent state" })) do
      assert.is_true(known:find("case " .. name .. ":", 1, true) ~= nil
        or known:find("case " .. number .. ":", 1, true) ~= nil, name .. " " .. number)
      count = count + 1
    end
    assert.is_true(count >= 11, tostring(count))
  end)

  -- 225 is CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC.
  it("after none that concerns code to be compiled, or a call alone", function()
    if not header then return pending "no CUDA toolkit" end
    local known, count = cases(), 0
    for name, number in pairs(errors_of(header, { "PTX", "invalid value", "out of memory" })) do
      assert.is_nil(known:find("case " .. name .. ":", 1, true), name)
      assert.is_nil(known:find("case " .. number .. ":", 1, true), name)
      count = count + 1
    end
    assert.is_true(count >= 4, tostring(count))
  end)
end)
