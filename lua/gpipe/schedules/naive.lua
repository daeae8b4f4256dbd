-- lua/gpipe/schedules/naive.lua - inter-layer model parallelism: one micro-batch at a time.
--
-- Stage r runs F(r,0), B(r,0), F(r,1), B(r,1), ...: only one device works at any moment, and one
-- activation is alive. What a model does that is merely spread over devices.
-- Source: the baseline of PipeDream-2BW (Narayanan et al. 2021).

return function(p, m)
  local rows, placement = {}, {}
  for r = 0, p - 1 do
    local row = {}
    for i = 0, m - 1 do
      row[#row + 1] = { op = "F", stage = r, micro = i }
      row[#row + 1] = { op = "B", stage = r, micro = i }
    end
    rows[r + 1], placement[r] = row, r
  end
  return { placement = placement, rows = rows }
end
