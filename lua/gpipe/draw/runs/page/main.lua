-- lua/gpipe/draw/runs/page/main.lua - script of the page of runs: what the mouse and the keys do,
-- and the data that comes anew while a run is watched.

return [==[
let page = JSON.parse(document.getElementById("data").textContent);
let charts = [];
const byId = id => document.getElementById(id);

function drawAll() { for (const chart of charts) drawChart(chart); }

// ---- legend -------------------------------------------------------------------------------------

function drawLegend() {
  fill("legend", ...page.parts.map((part, i) => {
    const label = make("label"), box = make("input"), mark = make("b");
    box.type = "checkbox";
    box.checked = !state.hidden.has(part.id);
    box.onchange = () => {
      if (box.checked) state.hidden.delete(part.id); else state.hidden.add(part.id);
      drawAll();
    };
    mark.style.background = colourOf(i);
    label.append(box, mark, part.name);
    return label;
  }));
}

// ---- charts -------------------------------------------------------------------------------------

function tell(chart, event) {
  const tip = byId("tip"), points = pointsAt(chart);
  tip.hidden = points.length === 0;
  if (tip.hidden) return;
  const first = points[0], x = first.curve.x[first.at];
  const unit = state.axis === "time" ? timeUnit(x) : [0, 1, ""];
  tip.replaceChildren(make("div", state.axis + " " + numberText(x / unit[1]) + " " + unit[2]));
  for (const {curve, at} of points.slice(0, 20)) {
    const line = make("div"), mark = make("b");
    mark.style.background = colourOf(curve.part);
    let text = page.parts[curve.part].name + "  " + numberText(curve.line[at]);
    if (curve.high[at] > curve.low[at])
      text += "  (" + numberText(curve.low[at]) + " to " + numberText(curve.high[at]) + ")";
    line.append(mark, text);
    tip.append(line);
  }
  const room = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(event.clientX + 16, innerWidth - room.width - 8)) + "px";
  tip.style.top = Math.max(4, Math.min(event.clientY + 16, innerHeight - room.height - 8)) + "px";
}

function setZoom(zoom) {
  state.zoom = zoom;
  byId("reset").disabled = !zoom;
  drawAll();
}

function listen(chart) {
  const canvas = chart.canvas, place = event => event.clientX - canvas.getBoundingClientRect().left;
  canvas.onpointerdown = event => {
    if (event.button) return;
    canvas.setPointerCapture(event.pointerId);
    chart.drag = [place(event), place(event)];
  };
  canvas.onpointermove = event => {
    chart.hover = place(event);
    if (chart.drag) chart.drag[1] = chart.hover;
    drawChart(chart);
    tell(chart, event);
  };
  canvas.onpointerup = () => {
    const drag = chart.drag;
    chart.drag = undefined;
    if (!drag || Math.abs(drag[1] - drag[0]) < 6) return drawChart(chart);
    setZoom(drag.map(chart.scales.fromX).sort((a, b) => a - b));
  };
  canvas.onpointerleave = () => {
    chart.hover = chart.drag = undefined;
    byId("tip").hidden = true;
    drawChart(chart);
  };
  canvas.ondblclick = () => setZoom(null);
}

function chartOf(data) {
  const figure = make("figure"), canvas = make("canvas"), caption = make("figcaption", data.name + " ");
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", "curves of " + data.name);
  const left = data.curves.reduce((sum, curve) => sum + curve.left_out, 0);
  if (left) caption.append(make("span", left + " not finite", "faint"));
  figure.append(caption, canvas);
  const chart = {data, canvas, figure};
  listen(chart);
  return chart;
}

// Charts stay where their names are the same, and with them what the mouse points at.
function drawCharts() {
  const old = new Map(charts.map(chart => [chart.data.name, chart]));
  const of = list => list.map(data => {
    const chart = old.get(data.name);
    if (!chart) return chartOf(data);
    chart.data = data;
    return chart;
  });
  const own = of(page.charts), machine = of(page.machine);
  for (const [id, list] of [["charts", own], ["machine", machine]]) {
    const figures = list.map(chart => chart.figure), box = byId(id);
    if (figures.length !== box.children.length || figures.some((f, i) => f !== box.children[i]))
      fill(id, ...figures);
  }
  byId("machine-part").hidden = machine.length === 0;
  charts = [...own, ...machine];
}

// ---- all of it ----------------------------------------------------------------------------------

function draw() {
  for (const name of ["runs", "charts", "machine"]) // an empty list arrives as an object
    if (!Array.isArray(page[name])) page[name] = [];
  const many = page.runs.length === 1 ? "1 run" : page.runs.length + " runs";
  byId("status").textContent = many + ", " + new Date(page.now * 1000).toLocaleString();
  makeParts();
  drawLegend();
  drawCharts();
  drawTables();
  drawAll();
}

byId("smooth").oninput = event => {
  state.smooth = +event.target.value;
  byId("smooth-value").textContent = event.target.value;
  drawAll();
};
byId("axis").onchange = event => { state.axis = event.target.value; setZoom(null); };
byId("log").onchange = event => { state.log = event.target.checked; drawAll(); };
byId("by").onchange = event => { state.by = event.target.value; draw(); };
byId("reset").onclick = () => setZoom(null);
byId("only").onchange = configsTable;
byId("machine-part").ontoggle = drawAll;
addEventListener("resize", drawAll);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
draw();

// A page that is served asks for what is new; one that lies in a file is as it is.
async function refresh() {
  if (!document.hidden) {
    try {
      const answer = await fetch("data.json", {cache: "no-store"});
      if (!answer.ok) throw new Error(answer.status);
      page = await answer.json();
      draw();
    } catch (error) {
      byId("status").textContent = "the connection is lost (" + error.message + "), trying again";
    }
  }
  setTimeout(refresh, 2000);
}
if (page.live) setTimeout(refresh, 2000);
]==]
