-- lua/gpipe/draw/runs/page/body.lua - the page of runs: what stands where. The scripts fill it in.

return [==[
<header>
<h1>{{TITLE}}</h1>
<p class="faint" id="status" role="status"></p>
<div class="bar">
<div class="tools">
<label>smoothing <input id="smooth" type="range" min="0" max="0.99" step="0.01" value="0">
<output id="smooth-value">0</output></label>
<label>x <select id="axis"><option value="step">step</option><option value="time">time</option>
</select></label>
<label><input id="log" type="checkbox"> logarithmic values</label>
<label id="by-label">one curve per <select id="by"></select></label>
<button id="reset" disabled>all of x</button>
</div>
<p class="faint help">drag over a curve: zoom &middot; double click: all of x &middot; point: values</p>
</div>
<div class="legend" id="legend"></div>
</header>
<main>
<div id="charts" class="charts"></div>
<details id="machine-part"><summary>the machine: rate, bubble, memory over the steps</summary>
<div id="machine" class="charts"></div></details>
<section id="groups-part" hidden><h2>Groups</h2><div id="groups"></div></section>
<section><h2>Runs</h2><div id="runs"></div></section>
<section><h2>Configs</h2>
<label><input id="only" type="checkbox" checked> only what differs</label>
<div id="configs"></div></section>
<section id="memory-part"><h2>Memory per device</h2><div id="memory"></div></section>
<section id="timeline-part"><h2>Schedule of the last step</h2><div id="timelines"></div></section>
</main>
<div id="tip" role="tooltip" hidden></div>
]==]
