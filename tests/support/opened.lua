-- tests/support/opened.lua - checks that the first micro-batch writes the gradients that others add
-- to.
--
-- A step that accumulates adds to what is there, also to zeros. So it gives what any other step
-- must give, whatever the gradients held before.

local gp = require "gpipe"
local synchronous = require "tests.support.synchronous"
local nn = gp.nn

local opened = {}

-- A layer that uses every way to make a gradient: a product, an op that cannot add (twice, and as a
-- second use of a weight), and none at all.
local Odd = nn.class "Odd"
function Odd:init(width)
  self.fc = nn.Linear(width, width)
  self.scale = nn.Parameter({ width }, nn.init.constant(1))
  self.unused = nn.Parameter({ 3 }, nn.init.constant(1))
  self.norm = nn.LayerNorm(width)
end
function Odd:forward(x)
  local y = self.fc(x * self.scale) * self.scale
  return self.norm(y + x:matmul(self.fc.weight))
end

--- Return eight layers; the second and the seventh are odd, and the last one shares the first's
--- weight.
function opened.odd()
  return synchronous.regression {
    x = gp.randn({ 19, 5 }, { seed = 31 }), y = gp.randn({ 19, 5 }, { seed = 32 }),
    model = function()
      gp.seed(6)
      local layers = {}
      for i = 1, 8 do layers[i] = nn.Sequential { nn.Linear(5, 5), nn.Tanh() } end
      layers[2], layers[7] = Odd(5), Odd(5)
      layers[8][1].weight = layers[1][1].weight
      layers[4]:freeze()
      return nn.Sequential(layers)
    end,
  }
end

-- Returns every gradient as text; where `exact`, with the sign of zeros too.
local function texts(pipe, exact)
  local list = {}
  for _, p in ipairs(pipe:parameters()) do
    local words = {}
    local flat = p.grad and p.grad:to("cpu"):contiguous():reshape { p.grad:numel() }:totable() or {}
    for i, v in ipairs(flat) do words[i] = ("%a"):format(exact and v or v + 0.0) end
    list[p.name] = table.concat(words, " ")
  end
  return list
end

local function spoil(pipe)
  for _, p in ipairs(pipe:parameters()) do
    if p.grad then p.grad:copy_(gp.full(p.grad.shape, 1e30, { dtype = p.grad.dtype })) end
  end
end

--- The passes that make gradients: pipe:step, or the two halves.
opened.PASSES = {
  step = function(pipe, made, opts) pipe:step(made.x, made.y, opts) end,
  halves = function(pipe, made, opts)
    local out = pipe:forward(made.x)
    pipe:backward(out * 0.5, opts)
  end,
}

--- Compare passes that write with passes that add, in turn; raises where they differ. fields:
--- {made, options of gp.pipeline, pass, exact, rounds = how often (replays begin with the third)}.
function opened.check(fields)
  local made, merged = fields.made, { loss = fields.made.loss, seed = 5 }
  for key, value in pairs(fields.options) do merged[key] = value end
  local pipe <close> = gp.pipeline(made.model(), merged)
  local wanted
  for round = 1, fields.rounds or 2 do
    for _, opts in ipairs { { accumulate = true }, {} } do
      if opts.accumulate then pipe:zero_grad() else spoil(pipe) end
      pipe:load_progress { steps = 0 }
      fields.pass(pipe, made, opts)
      local got = texts(pipe, fields.exact)
      wanted = wanted or got
      for name, text in pairs(wanted) do
        if got[name] ~= text then
          error(("round %d, %s: %s is %s, expected %s"):format(round,
            opts.accumulate and "added" or "written", name, got[name], text), 2)
        end
      end
    end
  end
end

return opened
