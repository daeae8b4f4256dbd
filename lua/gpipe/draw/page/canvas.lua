-- lua/gpipe/draw/page/canvas.lua - what pages share that draw over time on a canvas: its place in
-- the page, the buttons beside it, the tooltip, and the begin of the script.
--
-- The script that follows finds `data`, `stage`, `canvas`, `context`, `tip`, `dark` and `colours`
-- here and defines draw(). redraw() has it draw once before the next frame, whatever events came.

local canvas = {}

local HEAD = [==[
<header>
<h1>{{TITLE}}</h1>
%s<div class="bar">
<div class="legend">{{LEGEND}}</div>
<div class="tools">
<button id="out" title="zoom out (-)" aria-label="zoom out">&minus;</button>
<button id="in" title="zoom in (+)" aria-label="zoom in">+</button>
<button id="all" title="show everything (0)">fit</button>
%s</div>
</div>
</header>
<div id="stage" tabindex="0" role="application"
 aria-label="%s">
<canvas id="canvas"></canvas><div id="tip" role="tooltip" hidden></div></div>
<p class="faint help">%s</p>
]==]

--- The upper part of the body; what follows it explains the drawing in words and tables.
---@param o {note?: string, button: string, label: string, help: string} note: below the title;
---  button: behind the buttons for zooming; label: read by screen readers; help: below the drawing
---@return string
function canvas.body(o) return HEAD:format(o.note or "", o.button, o.label, o.help) end

canvas.script = [==[
const data = JSON.parse(document.getElementById("data").textContent);
const stage = document.getElementById("stage"), canvas = document.getElementById("canvas");
const tip = document.getElementById("tip"), context = canvas.getContext("2d");
const dark = matchMedia("(prefers-color-scheme: dark)"), FONT = "Helvetica, Arial, sans-serif";

const colours = {};
function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["paper", "ink", "faint", "line", "lane", "mark"])
    colours[name] = style.getPropertyValue("--" + name).trim();
}
// Gives the canvas the width of the page and `height`, in the pixels of the screen.
function sizeCanvas(height) {
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.round(stage.clientWidth * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.height = height + "px";
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
}
function clearCanvas() {
  context.fillStyle = colours.paper;
  context.fillRect(0, 0, canvas.width, canvas.height);
}
function line(x0, y0, x1, y1) {
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
}
// Shows the tooltip beside a place of the stage, within its width.
function showTip(words, px, py) {
  tip.hidden = false;
  tip.textContent = words;
  tip.style.left = Math.max(0, Math.min(px + 14, stage.clientWidth - tip.offsetWidth - 4)) + "px";
  tip.style.top = py + 17 + "px";
}
let queued = false;
function redraw() {
  if (queued) return;
  queued = true;
  requestAnimationFrame(() => { queued = false; draw(); });
}

]==]

return canvas
