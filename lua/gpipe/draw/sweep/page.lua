-- lua/gpipe/draw/sweep/page.lua - the frame of the page of html.lua: its looks by day and by
-- night, and a script that marks a trial everywhere when the mouse is over one of its marks.
--
-- q0 to q9 go from the best tenth to the worst: one hue that fades, as order is what they show.

return [==[<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="generator" content="gpipe-lua sweep {{TITLE}}">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{TITLE}}</title>
<style>
:root {
  --paper: #ffffff; --ink: #1c1e21; --faint: #5c636b; --line: #dfe3e8; --mark: #c2185b;
  --q0: #0b3d91; --q1: #1a56a8; --q2: #2f6fbb; --q3: #4a88c9; --q4: #67a0d4; --q5: #85b4dd;
  --q6: #a0c4e4; --q7: #b5cfe6; --q8: #c4d6e6; --q9: #d0dbe6; --bad: #c8541f;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14171b; --ink: #e6e8eb; --faint: #9aa3ad; --line: #2c333b; --mark: #ff6f9f;
    --q0: #bfe0ff; --q1: #9ccdfb; --q2: #7ab8f2; --q3: #5ea2e2; --q4: #4a8ccc; --q5: #3f78b0;
    --q6: #386695; --q7: #34577c; --q8: #314b67; --q9: #2f4256; --bad: #f0905e;
  }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1170px; padding: 18px 22px 40px; background: var(--paper);
  color: var(--ink); font: 14px/1.45 Helvetica, Arial, "Liberation Sans", sans-serif; }
h1 { font-size: 20px; margin: 0; }
h2 { font-size: 16px; margin: 22px 0 8px; }
p { margin: 2px 0 6px; }
.faint { color: var(--faint); font-size: 12.5px; }
section { overflow-x: auto; }
.each { display: flex; flex-wrap: wrap; gap: 8px; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 14px 3px 0; text-align: right; border-bottom: 1px solid var(--line); }
th { font-weight: 600; color: var(--faint); font-size: 12.5px; }
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
.bars .bar { width: 320px; }
.bar i { display: block; height: 11px; min-width: 1px; background: var(--q2); }
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
summary { cursor: pointer; }
.key i { display: inline-block; width: 11px; height: 11px; border-radius: 6px; margin: 0 4px 0 12px;
  vertical-align: -1px; }
</style>
</head>
<body>
<h1>{{TITLE}}</h1>
<p>{{HOW}}</p>
<p>{{COUNTS}}</p>
<p class="faint key"><i style="background: var(--q0); margin-left: 0"></i>best tenth
<i style="background: var(--q4)"></i>middle <i style="background: var(--q9)"></i>worst tenth
<i style="border: 1px solid var(--faint)"></i>stopped early
<i style="background: var(--bad)"></i>failed</p>
{{BODY}}
{{FAILURES}}
{{PAGES}}
<script>
"use strict";
let marked = null;
function mark(number) {
  if (number === marked) return;
  for (const e of document.querySelectorAll(".on")) e.classList.remove("on");
  marked = number;
  if (number === null) return;
  for (const e of document.querySelectorAll('[data-t="' + number + '"]')) {
    e.classList.add("on");
    if (e.tagName === "path") e.parentNode.insertBefore(e, e.parentNode.querySelector(".axis"));
  }
}
document.addEventListener("click", (event) => {
  const of = event.target.closest("[data-t]");
  if (of) location.hash = "t" + of.dataset.t;
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") location.hash = "";
});
// A click on a head sorts by its column, another one the other way round.
for (const head of document.querySelectorAll(".trials th")) {
  head.addEventListener("click", () => {
    const rows = head.closest("table").tBodies[0], at = head.cellIndex;
    const turn = head.classList.contains("up") ? -1 : 1;
    for (const other of head.parentNode.cells) other.classList.remove("up", "down");
    head.classList.add(turn > 0 ? "up" : "down");
    const text = (row) => row.cells[at].textContent;
    const key = (row) => "v" in row.cells[at].dataset ? Number(row.cells[at].dataset.v) : null;
    rows.append(...[...rows.rows].sort((a, b) => {
      const x = key(a), y = key(b);
      if (x === null || y === null)
        return x !== null ? -1 : y !== null ? 1 : turn * text(a).localeCompare(text(b));
      return turn * (x - y);
    }));
  });
}
document.addEventListener("mouseover", (event) => {
  const of = event.target.closest("[data-t]");
  mark(of ? of.dataset.t : null);
});
</script>
</body>
</html>
]==]
