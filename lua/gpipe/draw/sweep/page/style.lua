-- lua/gpipe/draw/sweep/page/style.lua - how the page of a sweep looks, beside what all pages share.
--
-- q0 to q9 go from the best tenth to the worst: one hue that fades, because order is what they
-- show.

return [==[
:root {
  --q0: #0b3d91; --q1: #1a56a8; --q2: #2f6fbb; --q3: #4a88c9; --q4: #67a0d4; --q5: #85b4dd;
  --q6: #a0c4e4; --q7: #b5cfe6; --q8: #c4d6e6; --q9: #d0dbe6; --bad: #c8541f;
}
@media (prefers-color-scheme: dark) {
  :root {
    --q0: #bfe0ff; --q1: #9ccdfb; --q2: #7ab8f2; --q3: #5ea2e2; --q4: #4a8ccc; --q5: #3f78b0;
    --q6: #386695; --q7: #34577c; --q8: #314b67; --q9: #2f4256; --bad: #f0905e;
  }
}
body { max-width: 1170px; }
.each { display: flex; flex-wrap: wrap; gap: 8px; }
.trials th:first-child, .trials td:first-child { text-align: right; }
.trials th { cursor: pointer; user-select: none; }
.trials th.up::after { content: " \2191"; } .trials th.down::after { content: " \2193"; }
.t { cursor: pointer; }
article { display: none; }
article:target { display: block; position: fixed; top: 5vh; right: 20px; overflow: auto;
  max-width: min(580px, 92vw); max-height: 90vh; padding: 6px 18px 14px; background: var(--paper);
  border: 1px solid var(--faint); box-shadow: 0 4px 24px rgba(0, 0, 0, .25); }
article td { text-align: left; }
.close { float: right; margin-top: 10px; color: var(--faint); }
.bars td { border: 0; }
.bars .share { width: 320px; }
.share i { display: block; height: 11px; min-width: 1px; background: var(--q2); }
svg text { fill: var(--faint); font-size: 11px; }
svg text.name { fill: var(--ink); font-size: 12px; }
svg .halo { paint-order: stroke; stroke: var(--paper); stroke-width: 5px; }
.grid { stroke: var(--line); }
.axis { stroke: var(--faint); }
.best { fill: none; stroke: var(--ink); stroke-width: 1.2; opacity: 0.6; }
circle.t { stroke: var(--paper); stroke-width: 0.7; }
path.t { fill: none; stroke-width: 1.3; }
.failed { fill: var(--bad); }
path.lost { stroke: var(--bad); opacity: .5; }
.q0 { --c: var(--q0); } .q1 { --c: var(--q1); } .q2 { --c: var(--q2); } .q3 { --c: var(--q3); }
.q4 { --c: var(--q4); } .q5 { --c: var(--q5); } .q6 { --c: var(--q6); } .q7 { --c: var(--q7); }
.q8 { --c: var(--q8); } .q9 { --c: var(--q9); }
circle[class*=" q"] { fill: var(--c); }
circle.early { fill: var(--paper); stroke: var(--c); stroke-width: 1.4; }
path.early { stroke-dasharray: 3 3; opacity: 0.6; }
path[class*=" q"] { stroke: var(--c); }
path.q0 { stroke-width: 2; }
circle.on { fill: var(--mark); r: 6px; }
path.on { stroke: var(--mark); stroke-width: 3; }
tr.on td { color: var(--mark); }
pre { overflow-x: auto; font-size: 12px; }
.key i { display: inline-block; width: 11px; height: 11px; border-radius: 6px; margin: 0 4px 0 12px;
  vertical-align: -1px; }
]==]
