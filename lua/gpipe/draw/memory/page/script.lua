-- lua/gpipe/draw/memory/page/script.lua - what draws memory over time in the page of html.lua.
--
-- A pixel shows the step of its own at which most is planned, so that no peak is lost; bisection
-- and a walk find that step. The canvas is that of page/canvas.lua.
--
-- What the page holds as JSON, made by html.lua:
--   from, to    of the time axis; unit "s", or "" where times count tasks from 0
--   most        bytes at the upper edge of every row
--   tasks       names on the axis, or null where it shows seconds
--   areas       [name, fill by day, fill by night], from the bottom to the top
--   devices     name, figures, cap or null, begins of the steps and the end of the last, levels (of
--               each area its bytes at each step, or nothing), measured ([time, bytes]), spans
--               (label, area, begin, finish, bytes: arrays; or null), labels, names of tasks or
--               null, and the step of the peak

return [==[
const devices = data.devices, HEAD = 22, AXIS = 34, LABEL = 0, AREA = 1, BEGIN = 2, END = 3, BYTES = 4;
let from = data.from, to = data.to, left = 70, width = 800, row = 120;
let chosen = null, hover = null; // {d, time}

for (const device of devices) {
  device.total = device.begin.map((_, i) => device.levels.reduce((sum, level) => sum + (level[i] || 0), 0));
}

// ---- words ----
const UNITS = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]];
function bytesText(bytes) {
  const unit = UNITS.find(entry => bytes >= entry[0]);
  return unit ? (bytes / unit[0]).toFixed(1) + " " + unit[1] : bytes + " bytes";
}
function momentText(device, time) {
  if (device.tasks) return device.tasks[Math.min(device.tasks.length - 1, Math.floor(time))];
  const [, divisor, name] = timeUnit(Math.abs(time));
  return parseFloat((time / divisor).toPrecision(5)) + " " + name;
}

// ---- steps ----
// The step that a time falls into; -1: nothing is planned then.
function stepAt(device, time) {
  let low = -1, high = device.begin.length - 1;
  if (!(time < device.finish)) return -1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (device.begin[middle] <= time) low = middle; else high = middle - 1;
  }
  return low;
}
// The step of [a, b) at which most is planned.
function highest(device, a, b) {
  let best = stepAt(device, a);
  if (best < 0 && a >= device.finish) return -1;
  for (let i = best + 1; i < device.begin.length && device.begin[i] < b; i++)
    if (best < 0 || device.total[i] > device.total[best]) best = i;
  return best;
}
// What is alive: {label, area, bytes}, the largest first.
function aliveAt(device, time) {
  const list = [], spans = device.spans;
  if (spans) {
    for (let i = 0; i < spans[BEGIN].length; i++)
      if (spans[BYTES][i] > 0 && spans[BEGIN][i] <= time && time < spans[END][i])
        list.push({ label: device.labels[spans[LABEL][i]], area: spans[AREA][i], bytes: spans[BYTES][i] });
  } else {
    const step = stepAt(device, time);
    device.levels.forEach((level, area) => {
      if (step >= 0 && level[step] > 0) list.push({ label: data.areas[area][0], area, bytes: level[step] });
    });
  }
  return list.sort((a, b) => b.bytes - a.bytes || a.area - b.area);
}
function measuredAt(device, time) {
  let bytes = null;
  for (const [at, value] of device.measured) { if (at > time) break; bytes = value; }
  return bytes;
}

// ---- layout ----
const fillOf = area => data.areas[area][dark.matches ? 2 : 1];
function byteTicks() {
  const unit = UNITS.find(entry => data.most >= entry[0]) || [1, "bytes"];
  const step = Math.max(unit[1] === "bytes" ? 1 : 0, roundStep(data.most / unit[0] / Math.max(2, row / 28)));
  const list = [];
  for (let n = 0; n * step * unit[0] <= data.most; n++)
    list.push([n * step * unit[0], n ? parseFloat((n * step).toPrecision(6)) + " " + unit[1] : "0"]);
  return list;
}
const top_ = d => d * (row + HEAD + 8) + HEAD;
function layout() {
  const room = Math.max(320, innerHeight * 0.62) / Math.max(1, devices.length) - HEAD - 8;
  row = Math.max(56, Math.min(190, Math.floor(room)));
  context.font = "11px " + FONT;
  left = Math.ceil(Math.max(...byteTicks().map(tick => context.measureText(tick[1]).width))) + 12;
  width = Math.max(200, stage.clientWidth - left - 8);
  sizeCanvas(top_(Math.max(0, devices.length - 1)) + row + AXIS);
}

// ---- drawing ----
const x = time => left + (time - from) / (to - from) * width;
const timeAt = at => from + (at - left) / width * (to - from);
const y = (d, bytes) => top_(d) + row * (1 - bytes / data.most);

function drawFrame(d) {
  context.fillStyle = colours.lane;
  context.fillRect(left, top_(d), width, row);
  context.strokeStyle = colours.line;
  context.lineWidth = 1;
  context.textAlign = "right";
  for (const [bytes, words] of byteTicks()) {
    const at = Math.round(y(d, bytes)) + 0.5;
    context.font = "11px " + FONT;
    context.fillStyle = colours.faint;
    line(left, at, left + width, at);
    context.fillText(words, left - 6, at + 3.5);
  }
  context.textAlign = "left";
  context.font = "bold 12.5px " + FONT;
  context.fillStyle = colours.ink;
  context.fillText(devices[d].name, left, top_(d) - 7);
  const behind = left + context.measureText(devices[d].name).width + 10;
  context.font = "12px " + FONT;
  context.fillStyle = colours.faint;
  context.fillText(devices[d].figures, behind, top_(d) - 7);
}
function drawStack(d) {
  const device = devices[d], ratio = devicePixelRatio || 1, pixels = Math.ceil(width * ratio);
  const stepOf = p => highest(device, timeAt(left + p / ratio), timeAt(left + (p + 1) / ratio));
  for (let p = 0, run = 0; p < pixels; p = run) {
    const step = stepOf(p);
    // one rectangle for all pixels of a step
    for (run = p + 1; run < pixels && stepOf(run) === step;) run++;
    if (step < 0) continue;
    let below = 0;
    device.levels.forEach((level, area) => {
      const bytes = level[step] || 0;
      if (!bytes) return;
      context.fillStyle = fillOf(area);
      context.fillRect(left + p / ratio, y(d, below + bytes), (run - p) / ratio, y(d, below) - y(d, below + bytes));
      below += bytes;
    });
  }
}
function drawMeasured(d) {
  const list = devices[d].measured;
  if (!list.length) return;
  context.beginPath();
  list.forEach(([at, bytes], i) => {
    if (i) context.lineTo(x(at), y(d, list[i - 1][1]));
    context[i ? "lineTo" : "moveTo"](x(at), y(d, bytes));
  });
  context.lineTo(x(Math.max(devices[d].finish, list[list.length - 1][0])), y(d, list[list.length - 1][1]));
  for (const [colour, thick] of [[colours.paper, 3.6], [colours.ink, 1.5]]) {
    context.strokeStyle = colour;
    context.lineWidth = thick;
    context.stroke();
  }
}
function drawCap(d) {
  if (devices[d].cap === null) return;
  context.strokeStyle = colours.mark;
  context.lineWidth = 1.6;
  context.setLineDash([7, 4]);
  line(left, y(d, devices[d].cap), left + width, y(d, devices[d].cap));
  context.setLineDash([]);
}
function drawMoment(d) {
  for (const [moment, alpha] of [[hover, 0.45], [chosen, 1]]) {
    if (!moment || moment.d !== d || moment.time < from || moment.time > to) continue;
    context.globalAlpha = alpha;
    context.strokeStyle = colours.ink;
    context.lineWidth = 1.5;
    line(x(moment.time), top_(d), x(moment.time), top_(d) + row);
    context.globalAlpha = 1;
  }
}
function timeTicks() {
  const tasks = data.tasks, list = [];
  if (!tasks) {
    const [, divisor, name] = timeUnit(to - from), step = roundStep((to - from) / divisor / (width / 80));
    for (let n = Math.ceil(from / divisor / step - 1e-9); n * step <= to / divisor * (1 + 1e-12); n++)
      list.push([n * step * divisor, parseFloat((n * step).toPrecision(9)) + " " + name]);
    return list;
  }
  const widest = Math.max(...tasks.slice(0, 500).map(name => context.measureText(name).width)) + 12;
  const every = Math.max(1, Math.ceil((to - from) * widest / width));
  for (let i = Math.ceil(Math.max(0, from) / every) * every; i < Math.min(tasks.length, to); i += every)
    list.push([i + 0.5, tasks[i]]);
  return list;
}
function drawAxis() {
  const base = top_(Math.max(0, devices.length - 1)) + row + 4;
  context.font = "11px " + FONT;
  context.fillStyle = colours.faint;
  context.strokeStyle = colours.faint;
  context.lineWidth = 1;
  line(left, base + 0.5, left + width, base + 0.5);
  context.textAlign = "center";
  for (const [at, words] of timeTicks()) {
    const half = context.measureText(words).width / 2;
    if (x(at) < left - 0.5 || x(at) > left + width + 0.5) continue;
    line(x(at), base, x(at), base + 4);
    context.fillText(words, Math.min(left + width - half, Math.max(left + half, x(at))), base + 17);
  }
}
function draw() {
  clearCanvas();
  for (let d = 0; d < devices.length; d++) {
    drawFrame(d);
    context.save();
    context.beginPath();
    context.rect(left, top_(d) - 1, width, row + 2);
    context.clip();
    drawStack(d);
    drawCap(d);
    drawMeasured(d);
    drawMoment(d);
    context.restore();
  }
  drawAxis();
}

]==]
