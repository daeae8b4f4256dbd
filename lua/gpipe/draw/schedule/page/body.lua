-- lua/gpipe/draw/schedule/page/body.lua - the page of html.lua: what stands where.
--
-- Words in braces are filled in. The figures stand below the drawing as tables too, for those who
-- read them with a screen reader or copy them; keys move and zoom as the mouse does.

local canvas = require "gpipe.draw.page.canvas"

return canvas.body {
  note = '<p class="faint">{{NOTE}}</p>\n',
  button = '<button id="mode" title="bars of a device together, or each timeline on its own (o)">'
    .. "overlay</button>\n",
  label = "timeline: arrows move, plus and minus zoom, 0 shows everything",
  help = [==[wheel, pinch, + and &minus;: zoom &middot; drag, arrows: move &middot; 0: everything
&middot; point at an action: its figures, and its micro-batch everywhere &middot; click: keep that]==],
} .. [==[
<section>
<h2>Figures</h2>
{{OVERVIEW}}
<details open><summary>per device</summary>
{{DEVICES}}
</details>
</section>
]==]
