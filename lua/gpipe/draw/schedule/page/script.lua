-- lua/gpipe/draw/schedule/page/script.lua - what draws the timelines in the page of html.lua.
--
-- Begins of a row are ascending, so what is visible is found by bisection; actions thinner than a
-- pixel share rectangles. The canvas is that of page/canvas.lua.
--
-- What the page holds as JSON, made by html.lua:
--   timelines   views, each with a name, a unit, the factor from its times to the common axis, the
--               names and stages of its devices, and a row per device: seven arrays of one length
--               (op, place of the stage on the device, micro-batch, weight version, begin,
--               duration, half: 1 and 2 for the two that run together, one above the other)
--   ops         of each op its letter, its name, its fill by day and by night, and how far its
--               stages go towards the paper
--   extent      the end of the axis, in `unit`
--
-- How it draws:
--   layout      gives each device of each timeline a bar: side by side (overlay) or one timeline
--               below the other; a window that changes its size lays out anew
--   draw        the axis, then the bars, then the names; what the pointer is on is marked in all
--   thinner     keeps what is owed to each colour, pixel by pixel, so that a schedule of thousands
--               of micro-batches shows its shares and no pattern of the screen
--   label       is the action as in the text of a schedule, "2F0@1", where there is room for that
--               in most of what is visible; else the micro-batch alone in all cells, and where
--               that does not fit nothing: letters never leave their cell
--   drawAxis    ticks at least 80 pixels apart at 1, 2 or 5 times a power of ten, in the unit that
--               suits what is visible: zooming in leads from seconds to microseconds
--   drawNames   names as many rows as can be read without touching each other
--   paint       mixes the colour of a stage; the ink on it is black or white by its luminance
--               (WCAG 2.1, relative luminance)

return [==[
const views = data.timelines, devices = views[0].rows.length;
const OP = 0, CHUNK = 1, MICRO = 2, VERSION = 3, BEGIN = 4, DURATION = 5, HALF = 6;
const AXIS = 26;
let overlay = views.length === 2, from = 0, to = data.extent, hover = null, kept = null;
let left = 60, width = 800, height = 300, bars = [], rich = false;

for (const view of views) for (const row of view.rows) {
  row[BEGIN] = Float64Array.from(row[BEGIN], t => t * view.factor);
  row[DURATION] = Float64Array.from(row[DURATION], t => t * view.factor);
  row.longest = row[DURATION].reduce((a, b) => Math.max(a, b), 0);
}

// ---- colours ----
const fills = new Map();
const rgb = hex => [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16));
function luminance(c) {
  const [r, g, b] = c.map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
// Fill and ink of an op on the chunk-th of `count` stages: towards the paper, as in the figures.
function paint(op, chunk, count) {
  const key = op * 4096 + chunk * 64 + count;
  if (!fills.has(key)) {
    const share = count > 1 ? Math.min(0.38, 0.56 / (count - 1)) * chunk * data.ops[op][4] : 0;
    const paper = dark.matches ? 20 : 255, base = rgb(data.ops[op][dark.matches ? 3 : 2]);
    const mixed = base.map(v => Math.round(v + (paper - v) * share)), l = luminance(mixed);
    fills.set(key, { fill: `rgb(${mixed})`, ink: (l + 0.05) ** 2 < 0.0525 ? "#fff" : "#000" });
  }
  return fills.get(key);
}
// These count updates, not micro-batches.
const updates = new Set(data.ops.map((op, i) => op[0] === "U" ? i : -1));

// What is not of a stage's own work has its op's name on it, not a number.
const others = new Set(data.ops.map((op, i) => op[1].startsWith("other") ? i : -1));

// ---- words ----
const unitOf = (extent, unit) => unit === "s" ? timeUnit(extent) : [0, 1, ""];
function timeText(t, unit) {
  const [, divisor, name] = unitOf(Math.abs(t), unit);
  return parseFloat((t / divisor).toPrecision(5)) + (name && " " + name);
}
function label(view, d, row, i) {
  const s = view.stages[d][row[CHUNK][i]], m = row[MICRO][i], v = row[VERSION][i];
  return `${s ?? ""}${data.ops[row[OP][i]][0]}${m < 0 ? "" : m}${v >= 0 ? "@" + v : ""}`;
}

// ---- layout: bars of {k, d, y, h} ----
function layout() {
  const slots = devices * views.length, room = Math.max(320, innerHeight * 0.62);
  const least = overlay ? 7 : slots <= 128 ? 13 : 5; // names of few rows do not overlap: the page scrolls
  const bar = Math.max(least, Math.min(30, Math.floor(room / slots) - 2));
  const gap = bar > 12 ? 4 : bar > 7 ? 2 : 1;
  context.font = "12px " + FONT;
  const names = Math.max(...views.flatMap(v => v.names).map(n => context.measureText(n).width));
  const tagged = views.length > 1 && overlay;
  const tags = tagged ? Math.max(...views.map(v => context.measureText(v.name).width)) + 10 : 0;
  left = Math.ceil(Math.min(320, names + tags + 16));
  bars = [];
  let y = AXIS;
  if (overlay || views.length === 1) {
    for (let d = 0; d < devices; d++) {
      for (let k = 0; k < views.length; k++, y += bar + 1) bars.push({ k, d, y, h: bar });
      y += gap;
    }
  } else {
    for (let k = 0; k < views.length; k++) {
      y += 20;
      for (let d = 0; d < devices; d++, y += bar + gap) bars.push({ k, d, y, h: bar, first: d === 0 });
      y += 8;
    }
  }
  height = y + 4;
  width = Math.max(200, stage.clientWidth - left - 2);
  sizeCanvas(height);
}

// ---- drawing ----
const x = t => left + (t - from) / (to - from) * width;
// The first action that may end after t.
function firstAfter(row, t) {
  let low = 0, high = row[BEGIN].length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (row[BEGIN][middle] + row.longest <= t) low = middle + 1; else high = middle;
  }
  return low;
}
function drawLabel(view, bar, row, i, x0, w, y, h, ink) {
  const size = Math.min(12, h - 3);
  if (size < 6 || w < 8) return;
  context.font = size + "px " + FONT;
  const op = row[OP][i], named = row[MICRO][i] < 0 || others.has(op);
  const short = named ? data.ops[op][0] : String(row[MICRO][i]);
  const full = label(view, bar.d, row, i);
  for (const words of rich ? [full, short] : [short]) {
    if (context.measureText(words).width > w - 3) continue;
    context.fillStyle = ink;
    context.fillText(words, x0 + w / 2, y + h / 2 + size * 0.36);
    return;
  }
}
// Whether nine tenths of the visible actions of stages have room for full labels.
function isRich() {
  const widths = [];
  let longest = 0;
  context.font = "12px " + FONT;
  for (const bar of bars) {
    const row = views[bar.k].rows[bar.d];
    for (let i = firstAfter(row, from); i < row[BEGIN].length && row[BEGIN][i] < to; i++) {
      if (row[MICRO][i] < 0 || updates.has(row[OP][i]) || !(row[DURATION][i] > 0)) continue;
      widths.push(row[DURATION][i] / (to - from) * width);
      if (widths.length <= 500) longest = Math.max(longest,
        context.measureText(label(views[bar.k], bar.d, row, i)).width);
      if (widths.length >= 20000) break;
    }
  }
  widths.sort((a, b) => a - b);
  return widths.length > 0 && widths[Math.floor(widths.length / 10)] >= longest + 3;
}
// Actions thinner than a pixel: each pixel shows what is owed most, the rest is carried on, so that a
// stretch which is one third forwards shows forwards in a third of its pixels.
function thinner(bar) {
  const owed = new Map();
  let pixel = -1, until = 0, run = null;
  const flush = () => {
    if (run && run.fill) {
      context.fillStyle = run.fill;
      context.fillRect(run.x, bar.y, pixel - run.x, bar.h);
    }
    run = null;
  };
  const next = () => {
    let best = null, most = -Infinity;
    for (const [fill, share] of owed) if (share > most) { best = fill; most = share; }
    owed.set(best, most - 1);
    if (!run || run.fill !== best) { flush(); run = { x: pixel, fill: best }; }
    pixel++;
  };
  const cover = (fill, x0, x1) => {
    for (let at = x0; at < x1 - 1e-6;) {
      const end = Math.min(x1, pixel + 1);
      owed.set(fill, (owed.get(fill) || 0) + end - at);
      at = until = end;
      if (end >= pixel + 1 - 1e-6) next();
    }
  };
  return {
    add(fill, x0, x1) {
      if (pixel >= 0 && x0 - until > 3) this.end();
      if (pixel < 0) { pixel = Math.floor(x0); until = pixel; }
      if (x0 > until) cover("", until, x0);
      cover(fill, Math.max(x0, until), x1);
    },
    end() {
      if (pixel >= 0 && until > pixel + 0.3) next();
      flush();
      pixel = -1;
      owed.clear();
    },
  };
}
function drawMarks(marks) {
  context.strokeStyle = colours.mark;
  context.lineWidth = 2;
  for (const [x0, y, w, h] of marks) context.strokeRect(x0 + 0.5, y + 0.5, Math.max(1, w - 1.6), h - 1);
}
function drawBar(bar, marked) {
  const view = views[bar.k], row = view.rows[bar.d], count = view.stages[bar.d].length;
  const marks = [], thin = thinner(bar), right = left + width;
  context.fillStyle = colours.lane;
  context.fillRect(left, bar.y, width, bar.h);
  for (let i = firstAfter(row, from); i < row[BEGIN].length && row[BEGIN][i] < to; i++) {
    const x0 = Math.max(left, x(row[BEGIN][i]));
    const x1 = Math.min(right, x(row[BEGIN][i] + row[DURATION][i])), w = x1 - x0;
    if (w < 0) continue;
    const half = row[HALF][i] || 0, h = half ? bar.h / 2 - 0.5 : bar.h;
    const y = half === 2 ? bar.y + bar.h / 2 + 0.5 : bar.y;
    const { fill, ink } = paint(row[OP][i], row[CHUNK][i], count);
    if (w < 1.5 && !half && w > 0) thin.add(fill, x0, x1);
    else {
      thin.end();
      context.fillStyle = fill;
      context.fillRect(x0, y, Math.max(0.6, w - (w > 3 ? 0.8 : 0)), h);
      drawLabel(view, bar, row, i, x0, w, y, h, ink);
    }
    if (row[MICRO][i] === marked && !updates.has(row[OP][i])) marks.push([x0, y, w, h]);
  }
  thin.end();
  drawMarks(marks);
}
function drawAxis() {
  const [, divisor, name] = unitOf(to, data.unit);
  const step = roundStep((to - from) / divisor / (width / 80));
  context.strokeStyle = colours.line;
  context.fillStyle = colours.faint;
  context.lineWidth = 1;
  context.font = "11px " + FONT;
  for (let n = Math.ceil(from / divisor / step - 1e-9); n * step <= to / divisor * (1 + 1e-12); n++) {
    const at = Math.round(x(n * step * divisor)) + 0.5;
    line(at, AXIS - 6, at, height);
    const words = parseFloat((n * step).toPrecision(9)) + (name && " " + name);
    const half = context.measureText(words).width / 2;
    context.fillText(words, Math.min(left + width - half, Math.max(left + half, at)), 14);
  }
}
function drawNames() {
  context.textAlign = "left";
  const every = Math.max(1, Math.ceil(12 / ((bars[views.length] || bars[0]).y - bars[0].y || 12)));
  for (const bar of bars) {
    const view = views[bar.k], middle = bar.y + bar.h / 2 + 4;
    if (bar.first) {
      context.font = "bold 12px " + FONT;
      context.fillStyle = colours.ink;
      context.fillText(view.name, 2, bar.y - 7);
    }
    if (bar.d % every) continue;
    context.font = "12px " + FONT;
    context.fillStyle = colours.ink;
    if (bar.k === 0 || !overlay) context.fillText(view.names[bar.d], 4, middle);
    if (!overlay || views.length === 1 || bar.h < 9) continue;
    context.font = Math.min(11, bar.h) + "px " + FONT;
    context.fillStyle = colours.faint;
    context.textAlign = "right";
    context.fillText(view.name, left - 6, middle - 0.5);
    context.textAlign = "left";
  }
  context.textAlign = "center";
}
function draw() {
  clearCanvas();
  context.textAlign = "center";
  const marked = hover && hover.micro >= 0 ? hover.micro : kept; // a micro-batch, or null
  rich = isRich();
  drawAxis();
  context.save();
  for (const bar of bars) drawBar(bar, marked);
  context.restore();
  drawNames();
}

]==]
