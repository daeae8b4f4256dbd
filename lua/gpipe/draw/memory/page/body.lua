-- lua/gpipe/draw/memory/page/body.lua - the page of html.lua: what stands where.

local canvas = require "gpipe.draw.page.canvas"

return canvas.body {
  button = '<button id="peak" title="the moment of the device\'s peak (p)">peak</button>\n',
  label = "memory over time: left and right change the moment, up and down the device, plus and minus zoom",
  help = [==[click a moment: what is alive then &middot; left, right: the moment before and
after &middot; up, down: the device &middot; p: its peak &middot; wheel, + and &minus;: zoom &middot;
drag: move &middot; 0: everything]==],
} .. [==[
<section>
<h2 id="moment">Alive at a moment</h2>
<div id="alive" aria-live="polite"></div>
<details open><summary>per device</summary>
{{DEVICES}}
</details>
</section>
]==]
