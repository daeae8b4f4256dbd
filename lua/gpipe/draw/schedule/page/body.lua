-- lua/gpipe/draw/schedule/page/body.lua - the page of html.lua: what stands where.
--
-- Words in braces are filled in; shell.lua has what is around. The figures stand below the drawing
-- as tables too, for those who read them with a screen reader or copy them; keys move and zoom as
-- the mouse does.

return [==[
<header>
<h1>{{TITLE}}</h1>
<p class="faint">{{NOTE}}</p>
<div class="bar">
<div class="legend">{{LEGEND}}</div>
<div class="tools">
<button id="out" title="zoom out (-)" aria-label="zoom out">&minus;</button>
<button id="in" title="zoom in (+)" aria-label="zoom in">+</button>
<button id="all" title="show everything (0)">fit</button>
<button id="mode" title="bars of a device together, or each timeline on its own (o)">overlay</button>
</div>
</div>
</header>
<div id="stage" tabindex="0" role="application"
 aria-label="timeline: arrows move, plus and minus zoom, 0 shows everything">
<canvas id="canvas"></canvas><div id="tip" role="tooltip" hidden></div></div>
<p class="faint help">wheel, pinch, + and &minus;: zoom &middot; drag, arrows: move &middot; 0: everything
&middot; point at an action: its figures, and its micro-batch everywhere &middot; click: keep that</p>
<section>
<h2>Figures</h2>
{{OVERVIEW}}
<details open><summary>per device</summary>
{{DEVICES}}
</details>
</section>
]==]
