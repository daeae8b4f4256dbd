-- lua/gpipe/draw/sweep/page/body.lua - the page of a sweep: what stands where.

return [==[
<h1>{{TITLE}}</h1>
<p>{{HOW}}</p>
<p>{{COUNTS}}</p>
<p class="faint key"><i style="background: var(--q0); margin-left: 0"></i>best tenth
<i style="background: var(--q4)"></i>middle <i style="background: var(--q9)"></i>worst tenth
<i style="border: 1px solid var(--faint)"></i>stopped early
<i style="background: var(--bad)"></i>failed</p>
{{FIGURES}}
{{FAILURES}}
{{TRIALS}}
]==]
