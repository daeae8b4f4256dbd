-- lua/gpipe/draw/runs/page/tables.lua - script of the page of runs: its tables.
--
-- Texts come from outside and are set as texts, never as markup.

return [==[
function make(tag, text, name) {
  const element = document.createElement(tag);
  if (text !== undefined && text !== null) element.textContent = text;
  if (name) element.className = name;
  return element;
}

function row(cells, tag) {
  const line = make("tr");
  for (const cell of cells) {
    const td = line.appendChild(make(tag || "td"));
    if (cell instanceof Node) td.append(cell); else td.textContent = cell === undefined ? "" : cell;
  }
  return line;
}

function fill(id, ...children) { document.getElementById(id).replaceChildren(...children); }

function figureText(value) {
  return typeof value === "number" ? (Number.isInteger(value) ? "" + value : numberText(value)) : "";
}

function sizeText(bytes) {
  if (typeof bytes !== "number") return "";
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (bytes >= 1024 && unit < 4) { bytes /= 1024; unit++; }
  return (unit ? bytes.toFixed(1) : bytes) + " " + units[unit];
}

// ---- runs ---------------------------------------------------------------------------------------

function runsTable() {
  const table = make("table");
  table.append(row(["run", "state", "step", "loss", "best", "rate", "spent", "when", ""], "th"));
  for (const run of page.runs) {
    const why = make("span", run.reason || "");
    for (const fault of run.faults || []) why.append(make("div", fault, "fault"));
    const best = run.best ? run.best.name + " " + figureText(run.best.value)
      + (run.best.step ? " @ " + run.best.step : "") : "";
    const line = row([run.name, make("span", run.state, "state " + run.state),
      (run.step ?? "") + (run.steps ? "/" + run.steps : ""), figureText(run.loss), best,
      run.rate ? numberText(+run.rate.toPrecision(4)) + " " + (run.unit || "") : "", run.spent,
      run.when, why]);
    line.lastChild.className = "text";
    for (const cell of [...line.children].slice(1, -1)) cell.classList.add("short");
    table.append(line);
  }
  fill("runs", table);
}

// ---- configs ------------------------------------------------------------------------------------

function configsTable() {
  const flat = page.runs.map(settingsOf), differing = new Set(differingKeys(flat));
  const keys = [...new Set(flat.flatMap(map => [...map.keys()]))].sort();
  const differs = key => differing.has(key);
  const only = document.getElementById("only").checked && page.runs.length > 1;
  const table = make("table");
  table.append(row(["", ...page.runs.map(run => run.name)], "th"));
  for (const key of [...keys.filter(differs), ...keys.filter(key => !differs(key))]) {
    if (only && !differs(key)) continue;
    const line = row([key, ...flat.map(map => map.get(key))]);
    if (differs(key)) line.className = "differs";
    table.append(line);
  }
  fill("configs", table.rows.length > 1 ? table : make("p", "no differences", "faint"));
}

// ---- memory -------------------------------------------------------------------------------------

// A bar of the parts of a device, as long as their share of the largest device. What no part names
// (activations, where they were not told apart) is the rest of it.
function partsBar(device, most) {
  const bar = make("div", undefined, "parts");
  Object.entries(device.parts || {}).forEach(([name, bytes], i) => {
    const part = make("i");
    part.style.width = 100 * bytes / most + "%";
    part.style.background = page.palette[i % page.palette.length][isDark() ? 1 : 0];
    part.title = name + ": " + sizeText(bytes);
    bar.append(part);
  });
  return bar;
}

function memoryTable(run) {
  const table = make("table"), names = [...new Set(run.memory.flatMap(d => Object.keys(d.parts || {})))];
  const most = Math.max(1, ...run.memory.map(d => Math.max(d.planned || 0, d.measured || 0,
    Object.values(d.parts || {}).reduce((sum, bytes) => sum + bytes, 0))));
  const heads = names.map((name, i) => {
    const head = make("span", name);
    const mark = make("b", "\u25a0 ");
    mark.style.color = page.palette[i % page.palette.length][isDark() ? 1 : 0];
    head.prepend(mark);
    return head;
  });
  table.append(row(["device", "planned", "measured", "", ...heads], "th"));
  for (const device of run.memory)
    table.append(row([device.device, sizeText(device.planned), sizeText(device.measured),
      partsBar(device, most), ...names.map(name => sizeText((device.parts || {})[name]))]));
  return table;
}

// One part a run, those that are open stay open.
function perRun(id, runs, content) {
  document.getElementById(id + "-part").hidden = runs.length === 0;
  const box = document.getElementById(id === "timeline" ? "timelines" : id);
  const open = new Map([...box.children].map(part => [part.dataset.path, part.open]));
  box.replaceChildren(...runs.map((run, i) => {
    const part = make("details");
    part.dataset.path = run.path;
    part.open = open.has(run.path) ? open.get(run.path) : i === 0;
    part.append(make("summary", run.name), content(run));
    return part;
  }));
}

function timelineImage(run) {
  const image = make("img");
  image.alt = "schedule of the last step of " + run.name;
  image.src = "data:image/svg+xml," + encodeURIComponent(run.timeline);
  return image;
}

function drawTables() {
  groupsTable();
  runsTable();
  configsTable();
  perRun("memory", page.runs.filter(run => Array.isArray(run.memory) && run.memory.length), memoryTable);
  perRun("timeline", page.runs.filter(run => run.timeline), timelineImage);
}
]==]
