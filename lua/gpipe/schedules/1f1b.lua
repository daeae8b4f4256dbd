-- lua/gpipe/schedules/1f1b.lua - one forward, one backward: GPipe's bubble with less memory.
--
-- Stage r of p starts with w forwards, then alternates F and B, then drains w backwards;
-- w = min(warmup * (p-1-r), m). At most min(w + 1, m) activations are alive.
-- Source: PipeDream-Flush (Narayanan et al. 2021), DAPPLE (Fan et al. 2021); warmup = 2 is eager 1F1B.

return function(p, m, opts)
  local rows, placement = {}, {}
  for r = 0, p - 1 do
    local row, w = {}, math.min((opts.warmup or 1) * (p - 1 - r), m)
    local function add(op, i) row[#row + 1] = { op = op, stage = r, micro = i } end
    for i = 0, w - 1 do add("F", i) end
    for i = 0, m - w - 1 do
      add("F", w + i)
      add("B", i)
    end
    for i = m - w, m - 1 do add("B", i) end
    rows[r + 1], placement[r] = row, r
  end
  return { placement = placement, rows = rows }
end
