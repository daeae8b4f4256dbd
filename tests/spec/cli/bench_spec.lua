-- tests/spec/cli/bench_spec.lua - the benchmarks run and print their figures; these specs do not
-- judge times.

local child = dofile "tests/child.lua"
local figure = dofile "scripts/bench/figure.lua"

describe("figures", function()
  it("have a median: the middle, or the mean of the two in the middle", function()
    assert.equal(2, figure.median { 3, 1, 2 })
    assert.equal(2.5, figure.median { 4, 1, 3, 2 })
  end)
end)

describe("a benchmark", function()
  local cases = {
    { "startup", { "--rounds", "1" }, "startup%.resident [%d.]+ MB must <= 30: %a+" },
    { "engine", { "--steps", "2" }, "engine%.action%.alone [%d.]+ us" },
    { "kernels", { "--rounds", "1", "--layers", "1", "--rows", "64" },
      "kernels%.adamw [%d.]+ %% of copy" },
    { "gpt", { "--steps", "1", "--layers", "1", "--width", "96", "--context", "16" }, "tok/s=%d+" },
    { "fuse", { "--rounds", "1", "--layers", "1", "--width", "96" },
      "fuse%.bytes 0[%d.]+ .* <= 0.9: met" },
    { "schedules", { "--devices", "4", "--chunks", "8" },
      "schedules%.time [%d.]+ s must <= 10: met" },
    { "pipeline", { "--rounds", "1", "--steps", "1" }, "pipeline%.[%a.]+ .*" },
    { "gemm", { "--rounds", "1", "--chunks", "1" }, "gemm%.%a+%.share .*" },
    { "layers", { "--rounds", "1", "--rows", "1" }, "layers%.3x3_64.*" },
    { "sweep", { "--seeds", "1", "--trials", "12", "--overhead", "20" },
      "sweep%.overhead%.tpe [%d.]+ ms must <= 5: %a+" },
    { "gpu", {}, "gpu skipped: no CUDA device" }, -- hidden from specs; scripts/gpu-check runs it
  }
  for _, case in ipairs(cases) do
    it(case[1] .. " prints its figures", function()
      if os.getenv "GPIPE_SANITIZE" == "thread" then
        return pending "products without oneDNN under the thread sanitizer take minutes"
      end
      local words = { "scripts/bench/" .. case[1] .. ".lua", table.unpack(case[2]) }
      local out, err, code = child.run(words)
      assert.equal("", err)
      assert.matches(case[3], out)
      assert.equal(0, code)
    end)
  end

  it("says why where there are no peers", function()
    local out, _, code = child.run({ "scripts/bench/peers.lua" },
      { environment = { GPIPE_PEER_FOLDER = "/nowhere" } })
    assert.matches("peers%.eager skipped: no peers in /nowhere", out)
    assert.equal(0, code)
  end)
end)
