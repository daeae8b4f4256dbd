-- lua/gpipe/init.lua - `require "gpipe"`: the table that scripts start from.
--
-- Tensors and the machine are loaded at once. nn, optim, data, schedule, pipeline and rarely used
-- parts are loaded when they are first named, so that a script pays only for what it uses.

local attention = require "gpipe.tensor.attention"
local core = require "gpipe.core"
local combine = require "gpipe.tensor.combine"
local create = require "gpipe.tensor.create"
local drawn = require "gpipe.tensor.random"
local environment = require "gpipe.environment"
local errors = require "gpipe.errors"
local indices = require "gpipe.tensor.indices"
local io = require "gpipe.io"
local join = require "gpipe.tensor.join"
local like = require "gpipe.tensor.like"
local machine = require "gpipe.machine"
local random = require "gpipe.random"
require "gpipe.tensor.methods"
require "gpipe.tensor.print"

core.hook("own_prefix", errors.own_prefix)
environment.check()

---@class gpipe
---@field version string
---@field nn table layers and losses
---@field optim table optimizers and learning-rate schedules
---@field data table files as batches
---@field models table networks of the field
---@field tokenizer fun(path: string, opts: table?): gpipe.Tokenizer?, string?, string?
---@field checkpoint table the whole state of training in a folder
---@field train table parts that a training loop calls
---@field sweep table|fun(opts: table): gpipe.Sweep
---@field run fun(name: string, opts: table?): gpipe.Run
---@field linalg table linear algebra
---@field schedule table pipeline schedules
---@field pipeline fun(model: nn.Module, opts: table): gpipe.Pipeline
---@field rank fun(): integer
---@field ranks fun(): integer
---@field host fun(): string
---@field barrier fun()
---@field all_gather fun(value: any): any[]
---@field broadcast fun(value: any, from: integer): any
---@field on_stop fun(handler: function?)
---@field scope fun(fn: function, ...): any
---@field no_grad fun(fn: function, ...): any
---@field grad fun(fn: function): function
---@field compile fun(fn: function, example_inputs: gpipe.Tensor[], opts: table?): gpipe.Compiled
---@field gradcheck fun(fn: function, inputs: gpipe.Tensor[], opts: table?): boolean?, string?
---@field dry_run fun(model: nn.Module, opts: table): gpipe.DryRun
---@field profile fun(model: table, sample: any, opts: table?): gpipe.ModelProfile?
---@field plan fun(model: table, sample: any, opts: table?): gpipe.Plan?, string?, string?
---@field cluster fun(opts: table): table[]
---@field goodput fun(opts: table): gpipe.Goodput
---@field balance_by_time fun(stages: integer, model: table, sample: any, opts: table?): integer[]
---@field balance_by_size fun(stages: integer, model: table, sample: any, opts: table?): integer[]
---@field plot fun(values: gpipe.Tensor|table, opts: table?): string|boolean|nil, string?, string?
---@field runs fun(dir: string?): gpipe.Runs?, string?, string?
local gp = {
  version = core.version,
  seed = random.seed,
  devices = machine.devices,
  memory = machine.memory,

  tensor = create.tensor,
  zeros = create.zeros,
  ones = create.ones,
  full = create.full,
  arange = create.arange,
  rand = create.rand,
  randn = create.randn,

  eye = create.eye,
  linspace = create.linspace,
  randint = drawn.randint,
  randperm = drawn.randperm,
  bernoulli = drawn.bernoulli,
  one_hot = indices.one_hot,
  frombytes = create.frombytes,
  meshgrid = combine.meshgrid,
  zeros_like = like.zeros_like,
  ones_like = like.ones_like,
  full_like = like.full_like,
  rand_like = like.rand_like,
  randn_like = like.randn_like,
  normal = drawn.normal,
  logspace = create.logspace,
  cdist = combine.cdist,
  block_diag = join.block_diag,
  searchsorted = indices.searchsorted,
  randint_like = like.randint_like,
  tril_indices = indices.tril_indices,
  triu_indices = indices.triu_indices,
  atleast_1d = join.atleast_1d,
  atleast_2d = join.atleast_2d,
  atleast_3d = join.atleast_3d,
  hstack = join.hstack,
  vstack = join.vstack,
  dstack = join.dstack,
  column_stack = join.column_stack,
  broadcast_tensors = join.broadcast_tensors,
  cartesian_prod = combine.cartesian_prod,
  combinations = combine.combinations,

  attention = attention,
  where = core.where,
  concat = core.concat,
  cat = core.concat,
  stack = join.stack,
  equal = core.methods.equal,

  save = io.save,
  load = io.load,
}

-- Names of the parts, and the functions that load them.
local parts = {
  nn = function() return require "gpipe.nn" end,
  optim = function() return require "gpipe.optim" end,
  data = function() return require "gpipe.data" end,
  models = function() return require "gpipe.models" end,
  schedule = function() return require "gpipe.schedule" end,
  pipeline = function() return require "gpipe.pipeline" end,
  linalg = function() return require "gpipe.linalg" end,
  no_grad = function() return require("gpipe.gradient").no_grad end,
  grad = function() return require("gpipe.gradient").grad end,
  gradcheck = function() return require "gpipe.gradient.check" end,
  einsum = function() return require "gpipe.tensor.einsum" end,
  compile = function() return require "gpipe.compile" end,
  checkpoint = function() return require "gpipe.checkpoint" end,
  sweep = function() return require "gpipe.sweep" end,
  run = function() return require "gpipe.run_writer" end,
  train = function() return require "gpipe.train" end,
  scope = function() return require "gpipe.scope" end,
  tokenizer = function() return require "gpipe.tokenizer" end,
  dry_run = function() return require "gpipe.pipeline.plan.dry_run" end,
  profile = function() return require("gpipe.profile").profile end,
  plan = function() return require("gpipe.plan").plan end,
  cluster = function() return require "gpipe.plan.cluster" end,
  goodput = function() return require "gpipe.plan.goodput" end,
  balance_by_time = function() return require("gpipe.balance").balance_by_time end,
  balance_by_size = function() return require("gpipe.balance").balance_by_size end,
  runs = function() return require("gpipe.run_reader").open end,
  plot = function() return require "gpipe.draw.plot" end,
  rank = function() return require("gpipe.ranks").rank end,
  ranks = function() return require("gpipe.ranks").ranks end,
  host = function() return require("gpipe.ranks").host end,
  barrier = function() return require("gpipe.ranks").barrier end,
  all_gather = function() return require("gpipe.ranks").all_gather end,
  broadcast = function() return require("gpipe.ranks").broadcast end,
  on_stop = function() return require("gpipe.stop").on_stop end,
}

local function names()
  local all = {}
  for name in pairs(gp) do all[#all + 1] = name end
  for name in pairs(parts) do
    if rawget(gp, name) == nil then all[#all + 1] = name end
  end
  table.sort(all)
  return all
end

local meta = { __name = "gpipe", parts = parts } -- parts: looked up by the interactive mode

function meta.__index(_, key)
  local part = parts[key]
  if part then
    local value = part()
    rawset(gp, key, value)
    return value
  end
  if type(key) ~= "string" then return nil end
  if core.methods[key] then
    errors.raise("gp: there is no '%s' (it is a method of tensors: t:%s(...))", key, key)
  end
  local way = require("gpipe.data.elsewhere").names[key] or require("gpipe.tensor.elsewhere")[key]
  if way then errors.raise("gp: there is no '%s' (%s)", key, way) end
  local near = errors.suggest(key, names())
  errors.raise("gp: there is no '%s'%s", errors.name(key),
    near and (" (did you mean '%s'?)"):format(near) or "")
end

function meta.__tostring()
  return require("gpipe.show").names("gpipe " .. core.version, names())
end

return setmetatable(gp, meta)
