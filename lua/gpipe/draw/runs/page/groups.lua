-- lua/gpipe/draw/runs/page/groups.lua - script of the page of runs: runs that agree in some
-- settings as one curve, the mean of theirs, in a band from the least to the largest.

return [==[
// List the settings of a run by their paths: {a: {b: 1}} is "a.b".
function flatten(value, path, into) {
  if (value !== null && typeof value === "object") {
    for (const key of Object.keys(value)) flatten(value[key], path ? path + "." + key : key, into);
  } else {
    into.set(path, "" + value);
  }
  return into;
}
function settingsOf(run) { return flatten(run.config || {}, "", new Map()); }

// Runs without any settings (of another script, or damaged) say nothing of what differs.
function differingKeys(flat) {
  const known = flat.filter(map => map.size > 0);
  const keys = [...new Set(known.flatMap(map => [...map.keys()]))].sort();
  return keys.filter(key => known.some(map => map.get(key) !== known[0].get(key)));
}

// What curves can be put together by: one setting, or all but one; where that leaves fewer than runs.
function choicesOf(flat) {
  const keys = differingKeys(flat), list = keys.map(key => ({name: key, keys: [key]}));
  if (keys.length > 1) for (const key of keys)
    list.push({name: "all but " + key, keys: keys.filter(other => other !== key)});
  return list.filter(choice => new Set(flat.map(map => labelOf(map, choice.keys))).size < flat.length);
}

function labelOf(map, keys) { return keys.map(key => key + "=" + (map.get(key) ?? "?")).join(" "); }

// Numbers by size, then words; what has none comes last.
function compareValues(a, b) {
  for (let i = 0; i < a.length; i++) {
    if (a[i] === b[i]) continue;
    if (a[i] === undefined || b[i] === undefined) return a[i] === undefined ? 1 : -1;
    const difference = a[i] - b[i];
    return Number.isNaN(difference) ? (a[i] < b[i] ? -1 : 1) : difference;
  }
  return 0;
}

// The parts that get a curve each: {name, id, runs: indices}.
function makeParts() {
  const flat = page.runs.map(settingsOf), choices = choicesOf(flat);
  const chosen = choices.find(choice => choice.name === state.by);
  const box = document.getElementById("by");
  box.replaceChildren(...["run", ...choices.map(choice => choice.name)].map(name => {
    const option = make("option", name);
    option.value = name;
    return option;
  }));
  box.value = chosen ? chosen.name : "run";
  document.getElementById("by-label").hidden = choices.length === 0;
  if (!chosen) {
    page.parts = page.runs.map((run, i) => ({name: run.name, id: run.path, runs: [i]}));
  } else {
    const found = new Map();
    flat.forEach((map, i) => {
      const label = labelOf(map, chosen.keys);
      if (!found.has(label)) found.set(label, {label, id: "=" + label, runs: [],
        values: chosen.keys.map(key => map.get(key))});
      found.get(label).runs.push(i);
    });
    page.parts = [...found.values()].sort((a, b) => compareValues(a.values, b.values));
    for (const part of page.parts) part.name = part.label + " (" + part.runs.length + ")";
  }
  page.grouped = !!chosen;
}

// ---- curves -------------------------------------------------------------------------------------

function valueAt(curve, list, x) {
  const last = curve.x.length - 1;
  if (x < curve.x[0] || x > curve.x[last]) return undefined;
  const at = nearestBelow(curve.x, x), next = Math.min(at + 1, last);
  const span = curve.x[next] - curve.x[at], share = span > 0 ? (x - curve.x[at]) / span : 0;
  return list[at] * (1 - share) + list[next] * share;
}

// Several curves as one, at the points of the longest.
function joined(list) {
  if (list.length === 1) return list[0];
  const longest = list.reduce((a, b) => b.x.length > a.x.length ? b : a);
  const made = {x: longest.x, low: [], high: [], mean: [], line: []};
  for (const x of longest.x) {
    const there = list.filter(curve => x >= curve.x[0] && x <= curve.x[curve.x.length - 1]);
    const means = there.map(curve => valueAt(curve, curve.mean, x));
    const lines = there.map(curve => valueAt(curve, curve.line, x));
    const average = values => values.reduce((sum, value) => sum + value, 0) / values.length;
    made.mean.push(average(means)); made.line.push(average(lines));
    made.low.push(Math.min(...lines)); made.high.push(Math.max(...lines));
  }
  return made;
}

// ---- the table ----------------------------------------------------------------------------------

function spreadText(values) {
  if (!values.length) return "";
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const text = numberText(+mean.toPrecision(4));
  if (values.every(value => value === values[0])) return text;
  const ends = [Math.min(...values), Math.max(...values)].map(value => numberText(+value.toPrecision(4)));
  return text + " (" + ends[0] + " to " + ends[1] + ")";
}

function groupsTable() {
  document.getElementById("groups-part").hidden = !page.grouped;
  if (!page.grouped) return;
  const table = make("table"), names = page.charts.map(chart => chart.name);
  table.append(row(["settings", "runs", ...names.map(name => "last " + name)], "th"));
  for (const part of page.parts) {
    const cells = page.charts.map(chart => spreadText(chart.curves
      .filter(curve => part.runs.includes(curve.run)).map(curve => curve.last)));
    table.append(row([part.label, part.runs.length, ...cells]));
  }
  fill("groups", table);
}
]==]
