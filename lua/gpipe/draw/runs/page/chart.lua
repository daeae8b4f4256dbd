-- lua/gpipe/draw/runs/page/chart.lua - script of the page of runs: one chart on a canvas.
--
-- A point of a curve is [x, low, high, mean]. Without smoothing the line is the mean within the
-- band of low and high; with it the smoothed means, as TensorBoard's.

return [==[
const state = {smooth: 0, axis: "step", log: false, zoom: null, hidden: new Set(), by: "run"};
const MARGIN = {left: 58, right: 26, top: 8, bottom: 24};

function ink(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }
function isDark() { return matchMedia("(prefers-color-scheme: dark)").matches; }
function colourOf(part) {
  const pair = page.palette[part % page.palette.length];
  return isDark() ? pair[1] : pair[0];
}

function smoothed(values, keep) {
  let sum = 0, weight = 0;
  return values.map(value => {
    sum = keep * sum + (1 - keep) * value;
    weight = keep * weight + 1 - keep;
    return sum / weight;
  });
}

// Between two records of the clock time passes evenly.
function timeAt(clock, step) {
  const at = nearestBelow(clock.x, step), next = Math.min(at + 1, clock.x.length - 1);
  const span = clock.x[next] - clock.x[at];
  const share = span > 0 ? Math.min(1, Math.max(0, (step - clock.x[at]) / span)) : 0;
  return clock.mean[at] + share * (clock.mean[next] - clock.mean[at]);
}

function nearestBelow(list, value) {
  let low = 0, high = list.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (list[middle] <= value) low = middle; else high = middle - 1;
  }
  return low;
}

// A curve as it is shown now; undefined where nothing of it is.
function shownCurve(curve) {
  const clock = page.runs[curve.run].clock;
  if (state.axis === "time" && !clock) return undefined;
  const keep = [], floor = state.log ? 0 : -Infinity;
  curve.x.forEach((_, i) => { if (curve.low[i] > floor) keep.push(i); });
  if (!keep.length) return undefined;
  const pick = list => keep.map(i => list[i]);
  const x = pick(curve.x), mean = pick(curve.mean);
  return {low: pick(curve.low), high: pick(curve.high), mean,
    x: state.axis === "time" ? x.map(step => timeAt(clock, step)) : x,
    line: state.smooth > 0 ? smoothed(mean, state.smooth) : mean};
}

// The curves of a chart: one of each part that is not hidden. Those that are the same as an earlier
// one know how many there are before them.
function shownCurves(chart) {
  const shown = [], same = new Map();
  page.parts.forEach((part, index) => {
    if (state.hidden.has(part.id)) return;
    const list = chart.curves.filter(curve => part.runs.includes(curve.run)).map(shownCurve);
    const there = list.filter(curve => curve);
    if (!there.length) return;
    const curve = {...joined(there), part: index}, key = curve.x.join() + ";" + curve.line.join();
    curve.copy = same.get(key) || 0;
    same.set(key, curve.copy + 1);
    shown.push(curve);
  });
  return shown;
}

// ---- axes ---------------------------------------------------------------------------------------

function numberText(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  for (const [unit, name] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]])
    if (size >= unit) return +(value / (name === "k" ? 1e3 : unit)).toPrecision(6) + name;
  return size < 1e-3 ? value.toExponential(3).replace(/\.?0+e/, "e") : "" + +value.toPrecision(5);
}

function ticks(from, to, most, log) {
  if (log && to / from >= 10) {
    const list = [], first = Math.ceil(Math.log10(from) - 1e-9), last = Math.floor(Math.log10(to) + 1e-9);
    const every = Math.max(1, Math.ceil((last - first) / most));
    for (let power = first; power <= last; power += every) list.push(10 ** power);
    if (list.length > 1) return list;
  }
  const step = roundStep((to - from) / most), list = [];
  for (let i = Math.ceil(from / step - 1e-9); i <= to / step + 1e-9; i++) list.push(i * step);
  return list;
}

// The ranges of what is shown, and the functions from values to places and back.
function scales(chart, curves, width, height) {
  let [x1, x2, y1, y2] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const curve of curves) curve.x.forEach(x => { x1 = Math.min(x1, x); x2 = Math.max(x2, x); });
  if (state.zoom) [x1, x2] = state.zoom;
  for (const curve of curves) curve.x.forEach((x, i) => {
    if (x < x1 || x > x2) return;
    y1 = Math.min(y1, curve.low[i], curve.line[i]);
    y2 = Math.max(y2, curve.high[i], curve.line[i]);
  });
  if (!(x2 > x1)) { x1 -= 0.5; x2 = x1 + 1; }
  if (!(y2 >= y1)) { y1 = state.log ? 0.1 : 0; y2 = 1; }
  // what differs by rounding only is the same
  if (y2 - y1 <= 1e-9 * Math.abs(y2)) { const room = Math.abs(y1) * 0.05 || 1; y1 -= room; y2 += room; }
  const log = state.log && y1 > 0, f = log ? Math.log : v => v;
  const w = width - MARGIN.left - MARGIN.right, h = height - MARGIN.top - MARGIN.bottom;
  return {x1, x2, y1, y2, log, w, h,
    atX: x => MARGIN.left + (x - x1) / (x2 - x1) * w,
    atY: y => MARGIN.top + h - 3 - (f(y) - f(y1)) / (f(y2) - f(y1)) * (h - 6),
    fromX: place => x1 + (place - MARGIN.left) / w * (x2 - x1)};
}

// ---- drawing ------------------------------------------------------------------------------------

function drawGrid(g, s) {
  g.font = "11px Helvetica, Arial, sans-serif";
  g.lineWidth = 1; g.strokeStyle = ink("--line"); g.fillStyle = ink("--faint");
  g.textAlign = "right"; g.textBaseline = "middle";
  for (const y of ticks(s.y1, s.y2, 5, s.log)) {
    const place = Math.round(s.atY(y)) + 0.5;
    g.beginPath(); g.moveTo(MARGIN.left, place); g.lineTo(MARGIN.left + s.w, place); g.stroke();
    g.fillText(numberText(y), MARGIN.left - 6, place);
  }
  g.textAlign = "center"; g.textBaseline = "top";
  const unit = state.axis === "time" ? timeUnit(s.x2 - s.x1) : [0, 1, ""];
  for (const x of ticks(s.x1 / unit[1], s.x2 / unit[1], Math.max(2, Math.floor(s.w / 80)), false)) {
    const place = s.atX(x * unit[1]);
    g.fillText(numberText(x) + (unit[2] && " " + unit[2]), place, MARGIN.top + s.h + 6);
  }
}

function tracePath(g, s, xs, ys, reverse) {
  for (let n = 0; n < xs.length; n++) {
    const i = reverse ? xs.length - 1 - n : n;
    g.lineTo(s.atX(xs[i]), s.atY(ys[i]));
  }
}

function drawCurve(g, s, curve) {
  const colour = colourOf(curve.part);
  g.fillStyle = g.strokeStyle = colour;
  g.globalAlpha = 0.16;
  g.beginPath();
  tracePath(g, s, curve.x, curve.high, false);
  tracePath(g, s, curve.x, curve.low, true);
  g.fill();
  g.lineJoin = "round";
  if (state.smooth > 0) {
    g.globalAlpha = 0.3; g.lineWidth = 1;
    g.beginPath(); tracePath(g, s, curve.x, curve.mean, false); g.stroke();
  }
  g.globalAlpha = 1; g.lineWidth = 1.7;
  g.setLineDash(curve.copy ? [7, 7 * curve.copy]
    : Math.floor(curve.part / page.palette.length) % 2 ? [6, 3] : []);
  g.beginPath(); tracePath(g, s, curve.x, curve.line, false); g.stroke();
  g.setLineDash([]);
  if (curve.x.length === 1) {
    g.beginPath(); g.arc(s.atX(curve.x[0]), s.atY(curve.line[0]), 3, 0, 7); g.fill();
  }
}

function drawChart(chart) {
  const canvas = chart.canvas, width = canvas.clientWidth, height = canvas.clientHeight;
  if (!width) return;
  const ratio = window.devicePixelRatio || 1;
  canvas.width = width * ratio; canvas.height = height * ratio;
  const g = canvas.getContext("2d");
  g.scale(ratio, ratio);
  chart.shown = shownCurves(chart.data);
  const s = chart.scales = scales(chart, chart.shown, width, height);
  drawGrid(g, s);
  g.save();
  g.beginPath(); g.rect(MARGIN.left - 4, 0, s.w + 8, MARGIN.top + s.h + 4); g.clip();
  for (const curve of chart.shown) drawCurve(g, s, curve);
  g.restore();
  if (chart.drag) {
    g.fillStyle = ink("--mark"); g.globalAlpha = 0.15;
    g.fillRect(chart.drag[0], MARGIN.top, chart.drag[1] - chart.drag[0], s.h);
    g.globalAlpha = 1;
  }
  if (chart.hover !== undefined) drawHover(g, chart);
}

function drawHover(g, chart) {
  const s = chart.scales;
  g.strokeStyle = ink("--faint"); g.lineWidth = 1;
  g.beginPath(); g.moveTo(chart.hover, MARGIN.top); g.lineTo(chart.hover, MARGIN.top + s.h); g.stroke();
  for (const {curve, at} of pointsAt(chart)) {
    g.fillStyle = colourOf(curve.part);
    g.beginPath(); g.arc(s.atX(curve.x[at]), s.atY(curve.line[at]), 3.5, 0, 7); g.fill();
  }
}

// Find the point of each curve that is nearest to the mouse.
function pointsAt(chart) {
  const x = chart.scales.fromX(chart.hover), list = [];
  for (const curve of chart.shown) {
    let at = nearestBelow(curve.x, x);
    if (at + 1 < curve.x.length && curve.x[at + 1] - x < x - curve.x[at]) at++;
    if (curve.x[at] >= chart.scales.x1 && curve.x[at] <= chart.scales.x2) list.push({curve, at});
  }
  return list;
}
]==]
