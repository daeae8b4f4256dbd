-- gpipe/data/init.lua - `gp.data`: files as batches of tensors.
--
-- A source knows items by position and gathers a list of them into tensors; a Dataset is a source
-- in some order; batches walk over a Dataset. A new kind of data is a new source.

local bytes = require "gpipe.data.bytes"
local csv = require "gpipe.data.csv"
local namespace = require "gpipe.namespace"
local tensors = require "gpipe.data.tensors"

return namespace("gp.data", {
  bytes = bytes.open, csv = csv.open, tensors = tensors.open,
})
