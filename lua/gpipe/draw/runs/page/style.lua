-- lua/gpipe/draw/runs/page/style.lua - how the page of runs looks, beside what all pages share.

return [==[
.tools { flex-wrap: wrap; gap: 8px 20px; align-items: center; }
.tools label { display: inline-flex; gap: 6px; align-items: center; }
.tools label[hidden] { display: none; }
select, input { font: inherit; accent-color: var(--mark); }
output { display: inline-block; min-width: 2.4em; font-variant-numeric: tabular-nums; }
button:disabled { opacity: 0.45; cursor: default; }
.legend label { display: inline-flex; gap: 5px; align-items: center; cursor: pointer; }
.legend b { display: inline-block; width: 14px; height: 4px; border-radius: 2px; }
.charts { display: grid; gap: 14px 22px; margin: 10px 0;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 460px), 1fr)); }
figure { margin: 0; min-width: 0; }
figcaption { font-weight: 600; margin: 0 0 2px; overflow-wrap: anywhere; }
figcaption span { font-weight: 400; }
.charts canvas { height: 220px; cursor: crosshair; touch-action: pan-y; }
#tip { position: fixed; }
#tip div { display: flex; gap: 6px; align-items: center; }
#tip b { flex: none; width: 10px; height: 10px; border-radius: 5px; }
td.text, th.text { text-align: left; }
td.short { white-space: nowrap; }
#runs td:first-child { min-width: 9em; }
#runs td.text { min-width: 15em; }
td { max-width: 340px; overflow-wrap: break-word; }
tr.differs td { background: color-mix(in srgb, var(--mark) 9%, transparent); }
tr.differs td:first-child { font-weight: 600; }
.state { white-space: nowrap; padding: 1px 7px; border-radius: 9px; border: 1px solid var(--line); font-size: 12px; }
.state.running { color: var(--good); border-color: var(--good); }
.state.failed, .state.killed { color: var(--mark); border-color: var(--mark); }
:root { --good: #217a52; }
@media (prefers-color-scheme: dark) { :root { --good: #6cc79b; } }
.parts { display: flex; width: 320px; height: 14px; background: var(--lane); border-radius: 3px;
  overflow: hidden; }
.parts i { height: 100%; }
#timelines img { max-width: 100%; background: #fff; border-radius: 4px; }
.fault { color: var(--mark); }
]==]
