-- lua/gpipe/schedule/draw/page/frame.lua - the page of html.lua: what stands where.
--
-- Words in braces are filled in. Everything is in the page itself: it can be mailed, archived, and
-- opened without a network. The figures stand below the drawing as tables too, for those who read
-- them with a screen reader or copy them; keys move and zoom as the mouse does. The order of the
-- parts matters: the script comes last and finds what it draws into.

return [==[
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{{TITLE}}</title>
<style>
{{STYLE}}
</style>
</head>
<body>
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
<script id="data" type="application/json">{{DATA}}</script>
<script>
{{SCRIPT}}
</script>
</body>
</html>
]==]
