-- lua/gpipe/draw/page/axis.lua - the begin of the scripts of pages with axes: units of time and
-- steps between ticks, as draw/axis.lua has them.

local axis = require "gpipe.draw.axis"
local json = require "gpipe.io.json"

return (([==[
"use strict";
// [extent from which on a unit is used, seconds in it, name]
const TIMES = {{TIMES}};
function timeUnit(extent) { return TIMES.find(entry => extent >= entry[0]); }
// The smallest of 1, 2, 5 times a power of ten that is at least `least`.
function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].find(digit => digit * power >= least * (1 - 1e-9)) * power;
}
]==]):gsub("{{TIMES}}", json.encode(axis.TIMES)))
