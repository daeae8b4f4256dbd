-- lua/gpipe/draw/sweep/page/script.lua - script of the page of a sweep: marks a trial everywhere
-- when the mouse is over one of its marks, and sorts the table of trials.

return [==[
"use strict";
let marked = null;
function mark(number) {
  if (number === marked) return;
  for (const e of document.querySelectorAll(".on")) e.classList.remove("on");
  marked = number;
  if (number === null) return;
  for (const e of document.querySelectorAll('[data-t="' + number + '"]')) {
    e.classList.add("on");
    if (e.tagName === "path") e.parentNode.insertBefore(e, e.parentNode.querySelector(".axis"));
  }
}
document.addEventListener("click", (event) => {
  const of = event.target.closest("[data-t]");
  if (of) location.hash = "t" + of.dataset.t;
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") location.hash = "";
});
// A click on a head sorts by its column, another one the other way round.
for (const head of document.querySelectorAll(".trials th")) {
  head.addEventListener("click", () => {
    const rows = head.closest("table").tBodies[0], at = head.cellIndex;
    const turn = head.classList.contains("up") ? -1 : 1;
    for (const other of head.parentNode.cells) other.classList.remove("up", "down");
    head.classList.add(turn > 0 ? "up" : "down");
    const text = (row) => row.cells[at].textContent;
    const key = (row) => "v" in row.cells[at].dataset ? Number(row.cells[at].dataset.v) : null;
    rows.append(...[...rows.rows].sort((a, b) => {
      const x = key(a), y = key(b);
      if (x === null || y === null)
        return x !== null ? -1 : y !== null ? 1 : turn * text(a).localeCompare(text(b));
      return turn * (x - y);
    }));
  });
}
document.addEventListener("mouseover", (event) => {
  const of = event.target.closest("[data-t]");
  mark(of ? of.dataset.t : null);
});
]==]
