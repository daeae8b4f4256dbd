-- gpipe/data/elsewhere.lua - says what replaces those names of PyTorch's data sets, loaders and
-- samplers that have no direct counterpart here.

local errors = require "gpipe.errors"

local elsewhere = {}

local SUBSET = "gp.data.subset(d, {from, to}) or gp.data.subset(d, positions)"
local CONCAT = "gp.data.concat {a, b} joins data sets"
local SAMPLE = "d:sample {weights = {...}, seed = 1} draws items"
local SPLIT = "d:shuffle(seed):split(0.8) gives the parts"

--- Names that are looked up in gp.data.
elsewhere.names = {
  DataLoader = "d:batches(n, {workers = 2}) walks over a data set",
  Dataset = "gp.data.from(function(i) return x, y end, {count = n}) asks for item i",
  IterableDataset = "gp.data.stream(make) is for items that come one after the other",
  TensorDataset = "gp.data.tensors(x, y) is the rows of tensors, gp.data.tensors({a, b}, y) too",
  ConcatDataset = CONCAT, ChainDataset = CONCAT, StackDataset = "gp.data.tensors({a, b}, y)",
  Subset = SUBSET, random_split = SPLIT, train_test_split = SPLIT,
  WeightedRandomSampler = SAMPLE, SubsetRandomSampler = SUBSET .. ", then d:shuffle(seed)",
  RandomSampler = "d:shuffle(seed), or d:sample {replacement = true, count = n}",
  SequentialSampler = "batches go in order unless the data set was shuffled",
  BatchSampler = "d:batches(n, {drop_last = true})",
  DistributedSampler = "d:shuffle(seed, epoch):shard(i, n)",
  collate_fn = "d:collate(fn) puts batches together", default_collate = "d:collate(fn)",
  ImageFolder = "gp.data.images {path = ...}", DatasetFolder = "gp.data.images {path = ...}",
  MNIST = "gp.data.mnist {path = ...}", FashionMNIST = "gp.data.mnist {path = ...}",
  CIFAR10 = "gp.data.cifar10 {path = ...}", CIFAR100 = "gp.data.cifar100 {path = ...}",
  pad_sequence = "d:batches(n, {pad = 0}) fills up items of several lengths",
  num_workers = "d:batches(n, {workers = 2})",
}

--- Names that are looked up in a dataset.
elsewhere.methods = {
  subset = SUBSET, concat = CONCAT, select = SUBSET, take = "gp.data.subset(d, {1, n})",
  skip = "gp.data.subset(d, {n + 1, -1})",
  DataLoader = "d:batches(n, {workers = 2})", random_split = SPLIT, train_test_split = SPLIT,
  epochs = "gp.data.epochs(d, {batch = n})", size = "#d", len = "#d", num_workers = "d:batches(n, "
    .. "{workers = 2})", collate_fn = "d:collate(fn)",
}

-- Options of PyTorch's loader.
local OPTIONS = {
  collate_fn = "d:collate(fn):batches(n)", sampler = "d:sample {weights = {...}}:batches(n)",
  batch_sampler = "d:collate(fn), d:sample {...} and the first argument do that",
  shuffle = "d:shuffle(seed):batches(n), or gp.data.epochs",
  batch_size = "the first argument: d:batches(n)", pin_memory = "pipe:step copies on queues of its "
    .. "own", persistent_workers = "threads end with their walk",
  worker_init_fn = "threads of workers run no Lua", generator = "d:shuffle(seed) has the seed",
}

--- Refuse an option of PyTorch's loader, and name what to use instead.
---@param who string
---@param opts any
function elsewhere.check_options(who, opts)
  if type(opts) ~= "table" then return end
  for name, way in pairs(OPTIONS) do
    if rawget(opts, name) ~= nil then
      errors.raise("%s: unknown option '%s' (%s)", who, name, way)
    end
  end
end

return elsewhere
