-- tests/spec/replicas/resume_spec.lua - a checkpoint of one cell goes on in any other with the same
-- bits: replicas, micro-batches, stages and processes may all differ.

local child = dofile "tests/child.lua"

-- Train a step for each cell {ranks, replicas, chunks, stages}, or a stream of some; return what
-- each printed.
local function train(cells, stream)
  local folder, outputs = os.tmpname(), {}
  os.remove(folder)
  child.shell("mkdir " .. child.quote(folder))
  for step, cell in ipairs(cells) do
    local words = cell[1] > 1 and { "--ranks", tostring(cell[1]) } or {}
    for _, word in ipairs { "tests/support/replicas_resume.lua", folder, step, cell[2], cell[3],
      cell[4], stream } do
      words[#words + 1] = tostring(word)
    end
    local out, err, code = child.run(words)
    assert.equal("", err:gsub("gpipe: [^\n]*\n", ""))
    assert.equal(0, code)
    outputs[step] = out
  end
  child.shell("rm -rf " .. child.quote(folder))
  return outputs
end

describe("a checkpoint", function()
  local one = train { { 1, 1, 8, 1 }, { 1, 1, 8, 1 }, { 1, 1, 8, 1 }, { 1, 1, 8, 1 } }

  it("of replicas in one process goes on with any other cell", function()
    assert.same(one, train { { 1, 2, 4, 2 }, { 1, 8, 1, 1 }, { 1, 1, 8, 3 }, { 1, 4, 2, 2 } })
  end)

  it("of replicas over processes goes on with any other number of them", function()
    assert.same(one, train { { 4, 4, 2, 1 }, { 2, 2, 4, 3 }, { 1, 8, 1, 2 }, { 3, 2, 4, 2 } })
  end)

  it("of a stream goes on with any other cell", function()
    local streams = train({ { 1, 1, 8, 1 }, { 1, 1, 8, 1 }, { 1, 1, 8, 1 }, { 1, 1, 8, 1 } },
      "stream")
    assert.truthy(streams[1] ~= one[1])
    assert.same(streams, train({ { 1, 2, 4, 2 }, { 1, 8, 1, 1 }, { 1, 1, 8, 3 }, { 1, 4, 2, 2 } },
      "stream"))
    assert.same(streams, train({ { 4, 4, 2, 1 }, { 2, 2, 4, 3 }, { 1, 8, 1, 2 }, { 3, 2, 4, 2 } },
      "stream"))
  end)
end)
