-- tests/spec/ranks/settings_spec.lua - ranks that would train in different ways are told so: what
-- their scripts set is compared, not only what they compute.

local child = dofile "tests/child.lua"
local jobs = dofile "tests/support/jobs.lua"

local HEAD = [[
local gp = require "gpipe"
local nn, optim = gp.nn, gp.optim
local R = gp.rank()
local x, y = gp.ones {8, 4}, gp.ones {8, 2}
local model = nn.Sequential {nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2)}
local function pipeline(opts)
  opts.loss, opts.chunks = opts.loss or nn.MSELoss(), 2
  return gp.pipeline(model, opts)
end
]]

-- {what differs, script, error}
local CASES = {
  { "the learning rate", [[
      local pipe = pipeline {}
      local opt = optim.SGD(pipe:parameters(), {lr = 0.1 + R})
      pipe:step(x, y)
      opt:step()]], "opt:step: lr is 0.1 on rank 0 and 1.1 on rank 1" },
  { "the optimizer", [[
      local pipe = pipeline {}
      local opt = optim[R == 0 and "SGD" or "Adam"](pipe:parameters(), {lr = 0.1})
      pipe:step(x, y)
      opt:step()]], "opt:step: rank 1 has other settings, groups or parameters in its optimizer" },
  { "a group", [[
      local pipe = pipeline {}
      local all = pipe:parameters()
      local a, b = {all[1], all[R + 2]}, {all[3 - R], all[4]}
      local opt = optim.SGD({{params = a, weight_decay = 0.1}, {params = b}}, {lr = 0.1})
      pipe:step(x, y)
      opt:step()]], "opt:step: rank 1 has other settings, groups or parameters in its optimizer" },
  { "the number of updates", [[
      local pipe = pipeline {}
      local opt = optim.SGD(pipe:parameters(), {lr = 0.1, momentum = 0.9})
      pipe:step(x, y)
      opt:step()
      local state = opt:state_dict()
      if R == 1 then state.step = state.step + 3 end
      opt:load_state_dict(state)
      pipe:step(x, y)
      opt:step()]], "load_state_dict: the ranks differ: rank 0 has step: i64 " },
  { "the rate of an optimizer of matrices", [[
      local pipe = pipeline {}
      local opt = optim.Muon(pipe:parameters "weight", {lr = 0.1 + R})
      pipe:step(x, y)
      opt:step()]], "opt:step: the ranks differ: rank 0 has group 1 lr 0.1, rank 1 has group 1 lr 1.1" },
  { "the rate of L-BFGS", [[
      local pipe = pipeline {}
      local opt = optim.LBFGS(pipe:parameters(), {lr = 0.1 + R})
      opt:step(function() return pipe:step(x, y) end)]],
    "opt:step: the ranks differ: rank 0 has group 1 lr 0.1, rank 1 has group 1 lr 1.1" },
  { "the norm that gradients are clipped to", [[
      local pipe = pipeline {}
      pipe:step(x, y)
      optim.clip_grad_norm(pipe:parameters(), 1 + R)]],
    "clip_grad_norm: the norm may be 1 on rank 0 and 2 on rank 1" },
  { "the parameters whose gradients are clipped", [[
      local pipe = pipeline {}
      pipe:step(x, y)
      optim.clip_grad_norm(pipe:parameters(R == 0 and "" or "weight"), 1)]],
    "clip_grad_norm: rank 0 clips 4 parameters and rank 1 clips 2" },
  { "whether gradients are added to earlier ones", [[
      local pipe = pipeline {}
      pipe:step(x, y)
      pipe:step(x, y, {accumulate = R == 0})]],
    "step: rank 1 updates with another optimizer, lr, clip_norm or accumulate than rank 0" },
  { "the rate of an update in the schedule", [[
      local pipe = pipeline {}
      pipe:use(optim.SGD(pipe:parameters(), {lr = 0.1 + R}))
      pipe:step(x, y)]],
    "step: rank 1 updates with another optimizer, lr, clip_norm or accumulate than rank 0" },
  { "the norm that a schedule clips to", [[
      local pipe = pipeline {}
      pipe:use(optim.SGD(pipe:parameters(), {lr = 0.1}), {clip_norm = 1 + R})
      pipe:step(x, y)]],
    "step: rank 1 updates with another optimizer, lr, clip_norm or accumulate than rank 0" },
  { "the rate of a stream", [[
      local pipe = pipeline {schedule = "pipedream_2bw"}
      local opt = optim.SGD(pipe:parameters(), {lr = 0.1})
      pipe:use(opt)
      pipe:step(x, y)
      if R == 1 then opt.lr = 0.2 end
      for _ = 1, 4 do pipe:step(x, y) end
      pipe:flush()]],
    "step: rank 1 updates with another optimizer, lr, clip_norm or accumulate than rank 0" },
  { "the gradient that backward is given", [[
      local pipe = gp.pipeline(model, {chunks = 2})
      local out = pipe:forward(x)
      pipe:backward(R == 0 and out or 2 * out)]],
    "backward: rank 1 was given another batch than rank 0" },
  { "the loss", [[pipeline {loss = R == 0 and nn.MSELoss() or nn.L1Loss()}]],
    "rank 0 has loss MSELoss, rank 1 has loss L1Loss" },
  { "a loss that is a function", [[
      local pipe = pipeline {loss = function(a, b) return R == 0 and (a - b):abs():mean() or (a - b):mean() end}
      pipe:step(x, y)]], "plan: rank 1 computes something else than rank 0 in its layers or its loss" },
  { "a number in a loss", [[
      local pipe = pipeline {loss = nn.HuberLoss {delta = 1 + R}}
      pipe:step(x, y)]], "plan: rank 1 computes something else than rank 0 in its layers or its loss" },
  { "a number in a layer", [[
      model = nn.Sequential {nn.Linear(4, 8), nn.LayerNorm(8, {eps = 1e-5 * (1 + R)})}
      local pipe = pipeline {loss = function(a) return (a * a):mean() end}
      pipe:step(x, y)]], "plan: rank 1 computes something else than rank 0 in its layers or its loss" },
  { "a tensor that a layer has captured", [[
      local mask = R == 0 and gp.ones {8} or gp.zeros {8}
      model = nn.Sequential {nn.Linear(4, 8), nn.Lambda(function(v) return v * mask end)}
      local pipe = pipeline {loss = function(a) return (a * a):mean() end}
      pipe:step(x, y)]], "plan: rank 1 computes something else than rank 0 in its layers or its loss" },
  { "what is frozen", [[
      if R == 1 then model:freeze "^1%.bias" end
      pipeline {}]], "rank 1 has parameter 1.bias f32 8 frozen" },
  { "the mode of a layer", [[
      local pipe = pipeline {}
      if R == 1 then model[2]:eval() end
      pipe:step(x, y)]], "plan: rank 1 computes something else than rank 0 in its layers or its loss" },
}

describe("ranks that differ in", function()
  for _, case in ipairs(CASES) do
    it(case[1] .. " end with the same error", function()
      local script = child.file(HEAD .. case[2])
      local _, err, code = child.run { "--log-ranks", "--ranks", "2", script }
      os.remove(script)
      assert.equal(1, code)
      local _, count = err:gsub(case[3]:gsub("%p", "%%%0"), "")
      assert.equal(2, count, err)
    end)
  end

  it("nothing train, with one process's bits", function()
    local text = HEAD .. [[
      local pipe = pipeline {devices = 2}
      local opt = optim.AdamW(pipe:parameters(), {lr = 0.1})
      for step = 1, 3 do
        opt.lr = 0.1 / step
        pipe:step(x, y)
        pipe:step(x, y, {accumulate = true})
        optim.clip_grad_norm(pipe:parameters(), 1 / step)
        opt:step()
      end
      if R == 0 then io.write(("%a"):format(pipe:evaluate(x, y))) else pipe:evaluate(x, y) end]]
    local script = child.file(text)
    local alone = child.run { script }
    os.remove(script)
    assert.truthy(alone:find "^0x")
    assert.equal(alone, (jobs.script("unix", 2, text)))
  end)
end)
