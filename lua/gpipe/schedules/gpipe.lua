-- lua/gpipe/schedules/gpipe.lua - fill and drain: all forwards, then all backwards.
--
-- Stage r runs F(r,0..m-1), then B(r,0..m-1). Bubble (p-1)/(m+p-1); m activations alive, or m stage
-- inputs and one activation with recomputation.
-- Source: Huang et al. 2019 (GPipe); backwards ascending, as torch.distributed.pipelining has them.

return function(p, m)
  local rows, placement = {}, {}
  for r = 0, p - 1 do
    local row = {}
    for i = 0, m - 1 do row[#row + 1] = { op = "F", stage = r, micro = i } end
    for i = 0, m - 1 do row[#row + 1] = { op = "B", stage = r, micro = i } end
    rows[r + 1], placement[r] = row, r
  end
  return { placement = placement, rows = rows }
end
