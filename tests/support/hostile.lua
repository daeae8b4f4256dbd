-- tests/support/hostile.lua PLACE ROUNDS - the child of tests/spec/tensor/hostile_spec.lua: calls
-- every function of a table of names with wrong, extreme and unusual arguments, ROUNDS times each with
-- several, and says what it is about to do before it does it, so that a crash or a hang names its
-- call.
--
-- An error is fine; an error of Lua's own ("attempt to ..") in our files, and a call of over two
-- seconds (HOSTILE_SECONDS), are printed as faults.

local core = require "gpipe.core"
local gp = require "gpipe"
local class = require "gpipe.nn.class"

local ONE = gp.arange(1, 6):reshape { 2, 3 }
local NAN = 0 / 0

-- By name; each is made anew for every call.
local VALUES = {
  { "nil", function() return nil end }, { "-1", function() return -1 end },
  { "0", function() return 0 end }, { "2^31", function() return 1 << 31 end },
  { "2^40", function() return 1 << 40 end }, { "least", function() return math.mininteger end },
  { "2.5", function() return 2.5 end }, { "nan", function() return NAN end },
  { "inf", function() return math.huge end }, { "text", function() return "x\0y" end },
  { "true", function() return true end }, { "{}", function() return {} end },
  { "{2, 3}", function() return { 2, 3 } end }, { "{-1}", function() return { -1 } end },
  { "{2^40, 2^40}", function() return { 1 << 40, 1 << 40 } end },
  { "{nan}", function() return { NAN } end }, { "{{}, {}}", function() return { {}, {} } end },
  { "{a = 1}", function() return { a = 1 } end }, { "function", function() return print end },
  { "tensor", function() return ONE:clone() end },
  { "scalar", function() return gp.tensor(2.0) end },
  { "empty", function() return gp.zeros { 0, 3 } end },
  { "NaN tensor", function() return ONE * NAN end },
  { "transposed", function() return ONE:clone():t() end },
  { "expanded", function() return gp.ones({ 1 }):expand { 2, 3 } end },
  { "ids", function() return gp.tensor({ { 1, 2, 9 }, { -4, 0, 3 } }, { dtype = "i64" }) end },
  { "bools", function() return ONE:gt(2) end }, { "u8", function() return ONE:to "u8" end },
  { "f16", function() return ONE:to "f16" end }, { "{tensor}", function() return { ONE } end },
}

-- What ends, waits, writes or spawns by intention.
local LEFT_OUT = {
  ["gp.run"] = true, ["gp.runs"] = true, ["gp.on_stop"] = true, ["gp.save"] = true,
  ["gp.load"] = true, ["gp.sweep"] = true, ["gp.scope"] = true, ["gp.no_grad"] = true,
}

local least = tonumber(os.getenv "HOSTILE_SECONDS") or 2
local random = 12345
local function draw(n)
  random = (random * 6364136223846793005 + 1442695040888963407) & math.maxinteger
  return (random >> 20) % n + 1
end

local function say(...)
  io.stdout:write(table.concat({ ... }, "\t"), "\n")
  io.stdout:flush()
end

local function is_ours(text)
  return text:find "^[^\n]*gpipe/" and text:find("attempt to", 1, true)
end

-- Call f with these, and look at how it went.
local function try(name, f, chosen)
  local shown, arguments = {}, {}
  for i, k in ipairs(chosen) do
    shown[i], arguments[i] = VALUES[k][1], VALUES[k][2]()
  end
  local call = ("%s(%s)"):format(name, table.concat(shown, ", "))
  say("call", call)
  local began = core.seconds()
  local good, result = pcall(f, table.unpack(arguments, 1, #chosen))
  local took = core.seconds() - began
  if not good and is_ours(tostring(result)) then
    say("fault", call, (tostring(result):gsub("\n.*", "")))
  end
  if took > least then say("fault", call, ("%.1f s"):format(took)) end
  if not good then return end
  if type(result) == "userdata" and getmetatable(result) == "gpipe.Tensor" then
    pcall(tostring, result)
  elseif class.of(result) then
    for _, input in ipairs { 20, 22, 26 } do
      local fine, text = pcall(result, VALUES[input][2]())
      if not fine and is_ours(tostring(text)) then
        say("fault", call .. "(" .. VALUES[input][1] .. ")", (tostring(text):gsub("\n.*", "")))
      end
    end
  end
end

local function functions_of(prefix, place)
  local list = {}
  for name, value in pairs(place) do
    local is_class = type(value) == "table" and class.info(value)
    local callable = type(value) == "function" or is_class
    if type(name) == "string" and callable and not LEFT_OUT[prefix .. name] then
      list[#list + 1] = { prefix .. name, value }
    end
  end
  table.sort(list, function(a, b) return a[1] < b[1] end)
  return list
end

local PLACES = {
  gp = gp, nn = gp.nn, init = gp.nn.init, optim = gp.optim, rates = gp.optim.schedule,
  linalg = gp.linalg, methods = core.methods,
}

local rounds = tonumber(arg[2]) or 40
for _, each in ipairs(functions_of(arg[1] .. ".", assert(PLACES[arg[1]]))) do
  local name, f = each[1], each[2]
  local own = arg[1] == "methods"
  for k = 1, #VALUES do try(name, f, own and { 20, k } or { k }) end
  for _ = 1, rounds do
    local chosen = { own and ({ 20, 21, 22, 24, 26, 27 })[draw(6)] or draw(#VALUES) }
    for i = 2, draw(4) do chosen[i] = draw(#VALUES) end
    try(name, f, chosen)
  end
  collectgarbage()
end
say "done"
