-- tests/spec/docs/repl_tour_spec.lua - the program prints what the session in docs/repl-tour.md
-- shows.

local child = dofile "tests/child.lua"

-- Returns the lines that are typed, and what the program must print.
local function session()
  local typed, wanted, inside = {}, {}, false
  for line in io.lines "docs/repl-tour.md" do
    local input = line:match "^>>? (.*)$"
    if line == "```repl" then inside = true
    elseif line == "```" then inside = false
    elseif inside and input then typed[#typed + 1] = input
    elseif inside then wanted[#wanted + 1] = line
    end
  end
  return table.concat(typed, "\n") .. "\n", table.concat(wanted, "\n") .. "\n"
end

describe("docs/repl-tour.md", function()
  it("shows what the interactive mode prints", function()
    local typed, wanted = session()
    local out, err = child.run({ "-i" }, { input = typed })
    assert.equal("", err)
    assert.equal(wanted, out)
  end)
end)
