-- gpipe/data/init.lua - `gp.data`: files as batches of tensors.
--
-- A source knows items by position and gathers a list of them into tensors; a Dataset is a source
-- in some order; batches walk over a Dataset. A new kind of data is a new source.

local bytes = require "gpipe.data.bytes"
local cifar = require "gpipe.data.image.cifar"
local concat = require "gpipe.data.set.concat"
local csv = require "gpipe.data.csv"
local elsewhere = require "gpipe.data.elsewhere"
local epochs = require "gpipe.data.epochs"
local from = require "gpipe.data.item.from"
local images = require "gpipe.data.image.images"
local jsonl = require "gpipe.data.jsonl"
local mnist = require "gpipe.data.image.mnist"
local namespace = require "gpipe.namespace"
local squad = require "gpipe.data.squad"
local stream = require "gpipe.data.stream"
local subset = require "gpipe.data.set.subset"
local tensors = require "gpipe.data.tensors"
local text = require "gpipe.data.text"
local tokens = require "gpipe.data.tokens"

return namespace("gp.data", {
  bytes = bytes.open, cifar10 = cifar.open10, cifar100 = cifar.open100, concat = concat,
  csv = csv.open, epochs = epochs, from = from.open, images = images.open,
  jsonl = jsonl.open, mnist = mnist.open, squad = squad.open, stream = stream,
  subset = subset, tensors = tensors.open, text = text.open, tokens = tokens.open,
}, elsewhere.names)
