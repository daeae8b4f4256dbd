-- lua/gpipe/draw/memory/page/body.lua - the page of html.lua: what stands where.

return [==[
<header>
<h1>{{TITLE}}</h1>
<div class="bar">
<div class="legend">{{LEGEND}}</div>
<div class="tools">
<button id="out" title="zoom out (-)" aria-label="zoom out">&minus;</button>
<button id="in" title="zoom in (+)" aria-label="zoom in">+</button>
<button id="all" title="show everything (0)">fit</button>
<button id="peak" title="the moment of the device's peak (p)">peak</button>
</div>
</div>
</header>
<div id="stage" tabindex="0" role="application"
 aria-label="memory over time: left and right change the moment, up and down the device, plus and minus zoom">
<canvas id="canvas"></canvas><div id="tip" role="tooltip" hidden></div></div>
<p class="faint help">click a moment: what is alive then &middot; left, right: the moment before and
after &middot; up, down: the device &middot; p: its peak &middot; wheel, + and &minus;: zoom &middot;
drag: move &middot; 0: everything</p>
<section>
<h2 id="moment">Alive at a moment</h2>
<div id="alive" aria-live="polite"></div>
<details open><summary>per device</summary>
{{DEVICES}}
</details>
</section>
]==]
