-- gpipe/data/init.lua - `gp.data`: files as batches of tensors.
--
-- A source knows items by position and gathers a list of them into tensors; a Dataset is a source
-- in some order; batches walk over a Dataset. A new kind of data is a new source.

local bytes = require "gpipe.data.bytes"
local csv = require "gpipe.data.csv"
local jsonl = require "gpipe.data.jsonl"
local namespace = require "gpipe.namespace"
local squad = require "gpipe.data.squad"
local tensors = require "gpipe.data.tensors"
local text = require "gpipe.data.text"
local tokens = require "gpipe.data.tokens"

return namespace("gp.data", {
  bytes = bytes.open, csv = csv.open, jsonl = jsonl.open, squad = squad.open,
  tensors = tensors.open, text = text.open, tokens = tokens.open,
})
