-- lua/gpipe/draw/page/style.lua - how all pages look, by day and by night.
--
-- The canvases of the pages take their colours from the same variables.

local colours = require "gpipe.draw.colours"

local STYLE = [==[
:root {
  --paper: $day.paper; --ink: $day.ink; --faint: $day.faint; --line: $day.line; --lane: $day.lane;
  --button: #f4f5f7; --tip: #1c1e21; --tip-ink: #ffffff; --mark: $day.mark;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: $night.paper; --ink: $night.ink; --faint: $night.faint; --line: $night.line; --lane: $night.lane;
    --button: #262c33; --tip: #f1f3f5; --tip-ink: #14171b; --mark: $night.mark;
  }
  .legend i { background: var(--dark); }
}
@media not (prefers-color-scheme: dark) { .legend i { background: var(--light); } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 18px 22px 40px; background: var(--paper); color: var(--ink);
  font: 14px/1.45 Helvetica, Arial, "Liberation Sans", sans-serif; }
h1 { font-size: 20px; margin: 0; }
h2 { font-size: 16px; margin: 18px 0 8px; }
p { margin: 2px 0 6px; }
.faint { color: var(--faint); font-size: 12.5px; }
.bar { display: flex; flex-wrap: wrap; gap: 8px 24px; justify-content: space-between;
  align-items: center; margin: 8px 0; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 16px; align-items: center; }
.legend i { display: inline-block; width: 12px; height: 12px; border-radius: 2px; margin-right: 5px;
  vertical-align: -1px; }
.legend i.idle { background: var(--lane); border: 1px solid var(--line); }
.tools { display: flex; gap: 6px; }
button { font: inherit; min-width: 32px; padding: 3px 10px; border: 1px solid var(--line);
  border-radius: 5px; background: var(--button); color: var(--ink); cursor: pointer; }
button:hover { border-color: var(--faint); }
#stage { position: relative; outline-offset: 2px; touch-action: pan-y; cursor: grab;
  user-select: none; -webkit-user-select: none; }
#stage.drag { cursor: grabbing; }
#stage:focus-visible { outline: 2px solid var(--mark); }
canvas { display: block; width: 100%; }
#tip { position: absolute; z-index: 2; pointer-events: none; max-width: 320px; padding: 6px 10px;
  border-radius: 5px; background: var(--tip); color: var(--tip-ink); font-size: 12.5px;
  white-space: pre; box-shadow: 0 2px 8px #0005; }
section { overflow-x: auto; }
table { border-collapse: collapse; margin: 6px 0 14px; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 14px 3px 0; text-align: right; border-bottom: 1px solid var(--line); }
th { font-weight: 600; color: var(--faint); font-size: 12.5px; vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; }
summary { cursor: pointer; color: var(--faint); }
@media print { .tools, .help { display: none; } }
]==]

return (STYLE:gsub("%$(%l+)%.(%l+)", function(time, name) return colours[time][name] end))
