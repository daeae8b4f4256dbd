-- tests/support/hostile.lua PLACE ROUNDS - the child of tests/spec/tensor/hostile_spec.lua: it
-- calls every function of a table of names (or every method of objects, or functions with every
-- option) with wrong, extreme and unusual arguments, ROUNDS times each with several. It prints each
-- call before it makes it, so that a crash or a hang names its call.
--
-- An ordinary error is fine. Faults are an error of Lua's own ("attempt to ..") in our files, and a
-- call of over two seconds (HOSTILE_SECONDS).

local core = require "gpipe.core"
local gp = require "gpipe"
local class = require "gpipe.nn.class"

local ONE = gp.arange(1, 6):reshape { 2, 3 }
local NAN = 0 / 0

-- The values by name; each is made anew for every call.
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

-- Functions that end, wait, write or spawn on purpose.
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

-- Calls f with these arguments, and checks how the call went.
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
  linalg = gp.linalg, methods = core.methods, data = gp.data, schedule = gp.schedule,
  train = gp.train, checkpoint = gp.checkpoint, models = gp.models,
}

-- ---- methods of objects ------------------------------------------------------------------------

local function new_pipe(more)
  local opts = { balance = { 2, 1 }, chunks = 2, loss = gp.nn.MSELoss() }
  for key, value in pairs(more or {}) do opts[key] = value end
  local layers = { gp.nn.Linear(3, 4), gp.nn.Tanh(), gp.nn.Linear(4, 3) }
  return gp.pipeline(gp.nn.Sequential(layers), opts)
end

local function trained_pipe()
  local pipe = new_pipe()
  pipe:step(gp.ones { 4, 3 }, gp.ones { 4, 3 })
  return pipe
end

local function new_optimizer() return gp.optim.Adam(new_pipe():parameters(), { lr = 0.1 }) end

-- Makes an object for each call; its methods are looked up in that object.
local OBJECTS = {
  pipe = trained_pipe, untrained = new_pipe, optimizer = new_optimizer,
  data_set = function() return gp.data.tensors(gp.ones { 6, 3 }, gp.ones { 6, 3 }) end,
  epochs = function()
    return gp.data.epochs(gp.data.tensors(gp.ones { 6, 3 }, gp.ones { 6, 3 }), { batch = 2 })
  end,
  schedule_object = function()
    return gp.schedule.build("zbv", { devices = 2, chunks = 3 })
  end,
  simulation = function()
    return gp.schedule.build("1f1b", { devices = 2, chunks = 3 }):simulate()
  end,
  module = function() return gp.nn.Sequential { gp.nn.Linear(3, 4), gp.nn.ReLU() } end,
  dry = function()
    return gp.dry_run(gp.nn.Sequential { gp.nn.Linear(3, 3) }, { loss = gp.nn.MSELoss(),
      sample = { gp.ones { 4, 3 }, gp.ones { 4, 3 } } })
  end,
}

-- Lists the methods of an object: those of its class, and of the table where it looks them up.
local function methods_of(object)
  local seen, list = { new = true }, {}
  local function note(place)
    for name, value in next, type(place) == "table" and place or {} do
      if type(name) == "string" and type(value) == "function" and not name:find "^_"
        and not seen[name] then
        seen[name], list[#list + 1] = true, name
      end
    end
  end
  local meta = getmetatable(object)
  for _ = 1, 5 do
    if type(meta) ~= "table" then break end
    note(rawget(meta, "methods"))
    note(rawget(meta, "__index"))
    meta = type(rawget(meta, "__index")) == "table" and getmetatable(rawget(meta, "__index"))
  end
  assert(#list > 0)
  table.sort(list)
  return list
end

-- ---- options -----------------------------------------------------------------------------------

local function model() return gp.nn.Sequential { gp.nn.Linear(3, 3), gp.nn.Linear(3, 3) } end
local function sample() return { gp.ones { 4, 3 }, gp.ones { 4, 3 } } end

local function closing(make)
  return function(opts)
    local pipe <close> = make(opts)
    pipe:step(gp.ones { 4, 3 }, gp.ones { 4, 3 })
  end
end

-- Functions with options, and all options that they take with good values.
local OPTIONS = {
  pipeline = {
    closing(function(opts) return gp.pipeline(model(), opts) end),
    { balance = { 1, 1 }, devices = 2, chunks = 2, schedule = "1f1b", checkpoint = "never",
      loss = gp.nn.MSELoss(), sample = sample(), precision = "f32", loss_scale = {}, finite = true,
      fuse = true, seed = 1, watchdog = 5, deferred_batch_norm = true },
  },
  dry_run = {
    function(opts) return tostring(gp.dry_run(model(), opts)) end,
    { balance = { 1, 1 }, devices = 2, chunks = 2, schedule = "1f1b", checkpoint = "never",
      loss = gp.nn.MSELoss(), sample = sample(), precision = "f32", loss_scale = {}, fuse = true,
      deferred_batch_norm = true, device = 0 },
  },
  profile = { function(opts) return tostring(gp.profile(model(), sample(), opts)) end,
    { device = "cpu:0", chunks = 2, repeats = 1, loss = gp.nn.MSELoss(), precision = "f32" } },
  balance_by_time = {
    function(opts) return gp.balance_by_time(2, model(), { sample()[1] }, opts) end,
    { timeout = 0, device = "cpu:0" },
  },
  balance_by_size = {
    function(opts) return gp.balance_by_size(2, model(), { sample()[1] }, opts) end,
    { chunks = 2, param_scale = 2, device = "cpu:0" },
  },
  greedy = { gp.schedule.greedy, { placement = { [0] = 0, 1 }, chunks = 2, costs = { F = 1 },
    priority = function() return 1 end, limit = 2 } },
  simulate = {
    function(opts)
      return gp.schedule.build("1f1b", { devices = 2, chunks = 2 }):simulate(opts).makespan
    end,
    { F = 1, B = 2, comm = 0, link = {}, bytes = 1, overlap = true, capacity = 1, barrier = true,
      joined = 1, memory = {}, unit = "s", U = 1 },
  },
  draw = {
    function(opts) return gp.schedule.build("1f1b", { devices = 2, chunks = 2 }):draw(opts) end,
    { width = 80, height = 10, colour = true, scale = 1, measured = {}, timelines = {} },
  },
  plot = { function(opts) return gp.plot({ 1, 2, 3 }, opts) end, { title = "a", x = "b", log = true,
    width = 80, height = 10, colour = true, unicode = true, svg = "/nowhere/x", force = false } },
  stream = { gp.data.stream, { from = function() end, batch = 2 } },
}
for _, name in ipairs(gp.schedule.names()) do
  OPTIONS["schedule " .. name] = {
    function(opts) return gp.schedule.build(name, opts):verify() end,
    { devices = 2, chunks = 3, stages_per_device = 2, group = 2, warmup = 1, memory = 2, F = 1, I = 1,
      W = 1, comm = 0, backward = "fifo", vertical_sync = true, batches = 2 },
  }
end
for _, name in ipairs { "SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adafactor", "Muon", "RAdam" } do
  OPTIONS["optim " .. name] = {
    function(opts)
      local pipe <close> = new_pipe()
      local opt = gp.optim[name](pipe:parameters(), opts)
      pipe:step(gp.ones { 4, 3 }, gp.ones { 4, 3 })
      opt:step()
    end,
    { lr = 0.1, momentum = 0.9, weight_decay = 0.1, betas = { 0.9, 0.99 }, eps = 1e-8, clip_norm = 1,
      nesterov = true, alpha = 0.9, maximize = true },
  }
end

-- Tries each option with each value, while the others are good or left out.
local function try_options(name, f, good)
  local keys = {}
  for key in pairs(good) do keys[#keys + 1] = key end
  table.sort(keys)
  for _, key in ipairs(keys) do
    for k = 1, #VALUES do
      local function call(value)
        local opts = {}
        for other, usual in pairs(good) do
          if draw(2) == 1 or other == "devices" or other == "chunks" then opts[other] = usual end
        end
        opts[key] = value
        return f(opts)
      end
      try(("%s %s ="):format(name, key), call, { k })
    end
    collectgarbage()
  end
end

-- ---- what is asked for -------------------------------------------------------------------------

local rounds = tonumber(arg[2]) or 40

local function try_functions(place)
  local own = place == "methods"
  for _, each in ipairs(functions_of(place .. ".", assert(PLACES[place]))) do
    local name, f = each[1], each[2]
    for k = 1, #VALUES do try(name, f, own and { 20, k } or { k }) end
    for _ = 1, rounds do
      local chosen = { own and ({ 20, 21, 22, 24, 26, 27 })[draw(6)] or draw(#VALUES) }
      for i = 2, draw(4) do chosen[i] = draw(#VALUES) end
      try(name, f, chosen)
    end
    collectgarbage()
  end
end

local function try_object(kind, make)
  for _, name in ipairs(methods_of(make())) do
    local function f(...)
      local object = make()
      return object[name](object, ...)
    end
    for k = 1, #VALUES do try(kind .. ":" .. name, f, { k }) end
    for _ = 1, rounds do
      local chosen = {}
      for i = 1, draw(4) do chosen[i] = draw(#VALUES) end
      try(kind .. ":" .. name, f, chosen)
    end
    collectgarbage()
  end
end

if arg[1] == "objects" then
  local kinds = {}
  for kind in pairs(OBJECTS) do kinds[#kinds + 1] = kind end
  table.sort(kinds)
  for _, kind in ipairs(kinds) do try_object(kind, OBJECTS[kind]) end
elseif arg[1] == "options" then
  local names = {}
  for name in pairs(OPTIONS) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do try_options(name, table.unpack(OPTIONS[name])) end
else
  try_functions(arg[1])
end
say "done"
