-- lua/gpipe/draw/schedule/page/events.lua - what moves the timelines of html.lua, and tooltips.
--
-- State and drawing are in script.lua.
--
--   wheel              zooms about the pointer; sideways, or with Shift, it moves
--   drag, two fingers  move, zoom
--   click              keeps the micro-batch marked; a second click, or Escape, lets go
--   double click       zooms in, with Shift out
--   + - arrows 0       zoom, move, all of it; Home and End go to the ends, o joins the timelines
--
-- Arrow keys up and down, Home and End scroll the page until the timeline has the focus: a reader
-- who never touches it must not be caught, and a page with a long table stays easy to read. A press
-- that moved by less than four pixels is a click. What is under the pointer is found by bisection
-- in the row, as in drawing; of two actions that run together the upper half of the bar is the
-- first.

return [==[
// ---- moving ----
function show(a, b) {
  const least = data.extent * 1e-7, length = Math.min(data.extent, Math.max(least, b - a));
  from = Math.max(0, Math.min(data.extent - length, a));
  to = from + length;
  redraw();
}
function zoom(factor, at) {
  const t = from + (at - left) / width * (to - from);
  show(t - (t - from) * factor, t + (to - t) * factor);
}
const move = share => show(from + share * (to - from), to + share * (to - from));
const all = () => show(0, data.extent);
function toggle() { overlay = !overlay; resize(); }

// ---- pointing ----
function find(px, py) {
  const bar = bars.find(b => py >= b.y && py < b.y + b.h);
  if (!bar || px < left || px > left + width) return null;
  const row = views[bar.k].rows[bar.d], t = from + (px - left) / width * (to - from);
  for (let i = firstAfter(row, t); i < row[BEGIN].length && row[BEGIN][i] <= t; i++) {
    const half = row[HALF][i] || 0, upper = py < bar.y + bar.h / 2;
    if (half && upper !== (half === 1)) continue;
    if (t < row[BEGIN][i] + row[DURATION][i]) return { bar, i, micro: row[MICRO][i] };
  }
  return null;
}
function tipText({ bar, i }) {
  const view = views[bar.k], row = view.rows[bar.d], own = t => timeText(t / view.factor, view.unit);
  const begin = row[BEGIN][i], end = begin + row[DURATION][i];
  let before = i - (row[HALF][i] === 2 ? 2 : 1);
  const idle = begin - (before < 0 ? 0 : row[BEGIN][before] + row[DURATION][before]);
  const of = views.length > 1 ? view.name + ", " : "", stageId = view.stages[bar.d][row[CHUNK][i]];
  const lines = [`${label(view, bar.d, row, i)}  ${data.ops[row[OP][i]][1]}`,
    `${of}device ${view.names[bar.d]}, stage ${stageId ?? "-"}`];
  const counted = updates.has(row[OP][i]) ? "update" : "micro-batch";
  if (row[MICRO][i] >= 0) lines.push(`${counted} ${row[MICRO][i]}`);
  if (row[VERSION][i] >= 0) lines.push(`weights after ${row[VERSION][i]} updates`);
  lines.push(`begin ${own(begin)}`, `end ${own(end)}`, `duration ${own(end - begin)}`);
  if (idle > 1e-9 * data.extent) lines.push(`waited ${own(idle)}`);
  const partner = row[HALF][i] === 1 ? i + 1 : i - 1;
  if (row[HALF][i]) lines.push(`together with ${label(view, bar.d, row, partner)}`);
  return lines.join("\n");
}
function point(event) {
  const box = stage.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
  const found = find(px, py), changed = (found && found.micro) !== (hover && hover.micro);
  hover = found;
  if (found) showTip(tipText(found), px, py); else tip.hidden = true;
  if (changed) redraw();
}
function leave() { hover = null; tip.hidden = true; redraw(); }

// ---- events ----
const pointers = new Map();
let moved = 0;
stage.addEventListener("wheel", event => {
  event.preventDefault();
  const px = event.clientX - stage.getBoundingClientRect().left;
  const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1;
  if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) move(event.deltaX * unit / width);
  else if (event.shiftKey) move(event.deltaY * unit / width);
  else zoom(Math.exp(event.deltaY * unit * (event.ctrlKey ? 0.01 : 0.0016)), px);
}, { passive: false });
stage.addEventListener("pointerdown", event => {
  if (event.button) return;
  pointers.set(event.pointerId, event.clientX);
  moved = 0;
  try { stage.setPointerCapture(event.pointerId); } catch { /* a made-up event has no pointer */ }
  stage.classList.add("drag");
});
stage.addEventListener("pointermove", event => {
  if (!pointers.has(event.pointerId)) return point(event);
  const before = [...pointers.values()];
  pointers.set(event.pointerId, event.clientX);
  const after = [...pointers.values()];
  moved += Math.abs(after[0] - before[0]);
  if (pointers.size === 1) move((before[0] - after[0]) / width);
  else {
    const box = stage.getBoundingClientRect().left;
    const apart = list => Math.max(8, Math.abs(list[1] - list[0]));
    zoom(apart(before) / apart(after), (after[0] + after[1]) / 2 - box);
  }
  leave();
});
function release(event) {
  if (!pointers.delete(event.pointerId)) return;
  if (!pointers.size) stage.classList.remove("drag");
  if (event.type === "pointerup" && moved < 4) {
    point(event);
    kept = hover && hover.micro >= 0 && hover.micro !== kept ? hover.micro : null;
    redraw();
  }
}
stage.addEventListener("pointerup", release);
stage.addEventListener("pointercancel", release);
stage.addEventListener("pointerleave", leave);
stage.addEventListener("dblclick", event =>
  zoom(event.shiftKey ? 2 : 0.5, event.clientX - stage.getBoundingClientRect().left));
const middle = () => left + width / 2;
const keys = {
  "+": () => zoom(0.7, middle()), "=": () => zoom(0.7, middle()), "-": () => zoom(1 / 0.7, middle()),
  ArrowLeft: () => move(-0.15), ArrowRight: () => move(0.15), "0": all, o: toggle,
  ArrowUp: () => zoom(0.7, middle()), ArrowDown: () => zoom(1 / 0.7, middle()),
  Home: () => show(0, to - from), End: () => show(data.extent - (to - from), data.extent),
  Escape: () => { kept = null; leave(); },
};
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
  // what scrolls the page does so until the timeline has the focus
  const active = document.activeElement, mine = active === stage;
  if (/^(ArrowUp|ArrowDown|Home|End)$/.test(event.key) && !mine) return;
  if (event.key.startsWith("Arrow") && !mine && active !== document.body) return;
  event.preventDefault();
  keys[event.key]();
});
for (const [id, act] of [["in", keys["+"]], ["out", keys["-"]], ["all", all], ["mode", toggle]])
  document.getElementById(id).addEventListener("click", act);
document.getElementById("mode").hidden = views.length < 2;
function resize() {
  layout();
  document.getElementById("mode").textContent = overlay ? "separate" : "overlay";
  draw();
}
addEventListener("resize", resize);
dark.addEventListener("change", () => { fills.clear(); readColours(); draw(); });
readColours();
resize();
]==]
