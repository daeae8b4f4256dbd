-- tests/soak/fault_save.lua KIND TARGET VALUE - save a model whose parameters are all VALUE, as a
-- checkpoint (KIND "folder") or as one file ("file"); exit code 3 and the message where it is
-- refused. See tests/soak/faults.
local gp = require "gpipe"
local nn = gp.nn

local kind, target, value = arg[1], arg[2], tonumber(arg[3])
local model = nn.Sequential { nn.Linear(300, 400), nn.Linear(400, 10) }
local pipe <close> = gp.pipeline(model, { loss = nn.MSELoss(), balance = { 1, 1 } })
local opt = gp.optim.Adam(pipe:parameters(), { lr = 0.1 })
for _, entry in ipairs(pipe:parameters()) do entry.value:copy_(value) end

local good, message, code
if kind == "file" then
  good, message, code = gp.save(target, pipe:state_dict())
else
  good, message, code = gp.checkpoint.save(target, { pipe = pipe, opt = opt })
end
if not good then
  io.stderr:write(("%s: %s\n"):format(code, message))
  os.exit(3, true)
end
