-- lua/gpipe/draw/memory/page/events.lua - mouse and keys in the page of html.lua, and the list of
-- what is alive. The list holds texts, never markup.

return [==[
// ---- what is alive ----
const MOST = 400; // rows of the list: more are not read
function cell(rowOf, words, colour) {
  const made = rowOf.insertCell();
  if (colour) made.appendChild(document.createElement("i")).style.background = colour;
  made.appendChild(document.createTextNode(words));
}
function showAlive() {
  const box = document.getElementById("alive"), title = document.getElementById("moment");
  const device = devices[chosen.d], list = aliveAt(device, chosen.time), at = momentText(device, chosen.time);
  const sum = list.reduce((bytes, entry) => bytes + entry.bytes, 0), probe = measuredAt(device, chosen.time);
  title.textContent = `Alive on ${device.name} at ${at}: ${bytesText(sum)}`
    + (probe === null ? "" : `, measured ${bytesText(probe)}`);
  const table = document.createElement("table"), head = table.insertRow();
  for (const words of ["what", "area", "bytes"])
    head.appendChild(document.createElement("th")).textContent = words;
  for (const entry of list.slice(0, MOST)) {
    const made = table.insertRow();
    cell(made, entry.label);
    cell(made, data.areas[entry.area][0], fillOf(entry.area));
    cell(made, bytesText(entry.bytes));
  }
  const last = table.insertRow();
  last.className = "sum";
  cell(last, list.length > MOST ? `${list.length}, of which ${MOST} are listed` : `${list.length} together`);
  cell(last, "");
  cell(last, bytesText(sum));
  box.replaceChildren(table);
}
function choose(d, time) {
  chosen = { d, time };
  showAlive();
  redraw();
}
function choosePeak(d) {
  const device = devices[d], i = device.peak;
  if (!device.begin.length) return;
  choose(d, (device.begin[i] + (device.begin[i + 1] ?? device.finish)) / 2);
}
// The middle of the step `by` steps behind the chosen one.
function chooseNext(by) {
  const device = devices[chosen.d], last = device.begin.length - 1;
  if (last < 0) return;
  const i = Math.min(last, Math.max(0, stepAt(device, chosen.time) + by));
  choose(chosen.d, (device.begin[i] + (device.begin[i + 1] ?? device.finish)) / 2);
  if (chosen.time < from || chosen.time > to) move(chosen.time - (from + to) / 2);
}

// ---- zoom ----
function move(by) {
  const span = to - from;
  from = Math.min(data.to - span, Math.max(data.from, from + by));
  to = from + span;
  redraw();
}
function zoom(factor, at) {
  const span = Math.min(data.to - data.from, Math.max((data.to - data.from) / 1e6, (to - from) / factor));
  from = at - (at - from) * span / (to - from);
  to = from + span;
  move(0);
}
function fit() { from = data.from; to = data.to; redraw(); }

// ---- mouse ----
const placeOf = event => {
  const box = canvas.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
  const d = devices.findIndex((_, i) => py >= top_(i) - HEAD && py < top_(i) + row + 8);
  return { px, py, d, time: timeAt(Math.min(left + width, Math.max(left, px))) };
};
let drag = null;
stage.addEventListener("pointerdown", event => { drag = { px: placeOf(event).px, from, moved: false }; });
addEventListener("pointerup", () => { stage.classList.remove("drag"); setTimeout(() => { drag = null; }); });
stage.addEventListener("pointermove", event => {
  const place = placeOf(event);
  if (drag && Math.abs(place.px - drag.px) > 3) {
    drag.moved = true;
    stage.classList.add("drag");
    move(drag.from - (place.px - drag.px) / width * (to - from) - from);
  }
  hover = place.d >= 0 && place.px >= left ? { d: place.d, time: place.time } : null;
  tip.hidden = !hover || !!(drag && drag.moved);
  if (!tip.hidden) {
    const device = devices[place.d], step = stepAt(device, place.time);
    const probe = measuredAt(device, place.time), sum = step < 0 ? 0 : device.total[step];
    const lines = [`${device.name}, ${momentText(device, place.time)}: ${bytesText(sum)}`];
    device.levels.forEach((level, area) => {
      if (step >= 0 && level[step] > 0) lines.push(`${data.areas[area][0]}  ${bytesText(level[step])}`);
    });
    if (probe !== null) lines.push(`measured  ${bytesText(probe)}`);
    showTip(lines.join("\n"), place.px, place.py);
  }
  redraw();
});
stage.addEventListener("pointerleave", () => { hover = null; tip.hidden = true; redraw(); });
stage.addEventListener("click", event => {
  const place = placeOf(event);
  if (place.d >= 0 && !(drag && drag.moved)) choose(place.d, place.time);
});
stage.addEventListener("wheel", event => {
  event.preventDefault();
  zoom(Math.exp(-event.deltaY / 400), placeOf(event).time);
}, { passive: false });

// ---- keys ----
const middle = () => (from + to) / 2;
const keys = {
  "+": () => zoom(1.5, middle()), "=": () => zoom(1.5, middle()), "-": () => zoom(1 / 1.5, middle()),
  "0": fit, p: () => choosePeak(chosen.d), ArrowLeft: () => chooseNext(-1), ArrowRight: () => chooseNext(1),
  ArrowUp: () => choose(Math.max(0, chosen.d - 1), chosen.time),
  ArrowDown: () => choose(Math.min(devices.length - 1, chosen.d + 1), chosen.time),
};
stage.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key] || !chosen) return;
  event.preventDefault();
  keys[event.key]();
});
document.getElementById("in").onclick = keys["+"];
document.getElementById("out").onclick = keys["-"];
document.getElementById("all").onclick = fit;
document.getElementById("peak").onclick = () => chosen && choosePeak(chosen.d);

function start() { readColours(); layout(); redraw(); }
addEventListener("resize", start);
dark.addEventListener("change", () => { start(); if (chosen) showAlive(); });
start();
// The highest peak of all devices is what one asks for first.
let best = -1;
devices.forEach((device, d) => {
  const peak = device.total[device.peak];
  if (device.begin.length && (best < 0 || peak > devices[best].total[devices[best].peak])) best = d;
});
if (best >= 0) choosePeak(best);
]==]
