-- lua/gpipe/draw/memory/page/style.lua - what the page of html.lua adds to the style of all pages.

return [==[
.legend b { display: inline-block; width: 20px; margin-right: 5px; vertical-align: 4px; }
.legend b.probe { border-top: 2px solid var(--ink); }
.legend b.cap { border-top: 2px dashed var(--mark); }
#alive td:nth-child(2), #alive th:nth-child(2) { text-align: left; }
#alive i { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: 6px; }
#alive tr.sum td { font-weight: 600; border-bottom: none; }
#alive { min-height: 120px; }
]==]
