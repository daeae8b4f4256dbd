-- lua/gpipe/shell/catalog.lua - lists every public name by subject, for the reference, for the
-- definitions for editors, and for the test that they are complete.
--
-- Names are found by inspection, so a new one needs a comment and no entry here. The sections of
-- layers are the files that define them.

local comments = require "gpipe.shell.comments"
local documentation = require "gpipe.shell.documentation"
local names = require "gpipe.shell.names"

local catalog = {}

---@class gpipe.DocName
---@field name string "zeros"
---@field path string the name to look up: "gp.zeros", "nn.Linear", "pipe:step", "t:matmul"
---@field class? string of a method: "gpipe.Pipeline"
---@field section string
---@field entry? gpipe.DocEntry nil if nothing is documented

-- ---- sections ----------------------------------------------------------------------------------

local TITLES = { -- of files
  pool = "Windows of images and sequences", conv = "Windows of images and sequences",
  pad = "Windows of images and sequences", attention = "Attention",
  batch_norm = "Normalization", group_norm = "Normalization", layer_norm = "Normalization",
  rms_norm = "Normalization", initial = "Initial values", module = "Modules", class = "Modules",
  parameter = "Modules", sequential = "Containers", recurrent = "Recurrent layers",
  create = "Making tensors", indices = "Making tensors", random = "Random numbers",
  machine = "The machine", io = "Files", npy = "Files", fill = "Initial values",
  like = "Making tensors", join = "Several tensors", combine = "Several tensors",
}
local FOLDERS = {
  loss = "Losses", container = "Containers", skip = "Skip connections", layer = "Other layers",
  shape = "Other layers", dropout = "Other layers", activation = "Activations",
  gradient = "Gradients", models = "Models", gpt2 = "Models",
}

-- A function of a value; its source tells where the value is defined.
local function function_of(value)
  if type(value) ~= "table" then return value end
  for _, held in next, value do
    if type(held) == "function" then return held end
  end
end

local function section_of(value, otherwise)
  local f = function_of(value)
  local path = f and debug.getinfo(f, "S").source or ""
  local folder, file = path:match "([%w_]*)/([%w_]+)%.lua$"
  if file == "init" then folder, file = folder, folder end
  return TITLES[file] or FOLDERS[folder] or otherwise
end

-- ---- names -------------------------------------------------------------------------------------

-- The function to document: a table that can be called, such as gp.models.gpt2, has it as `call`.
local function callee(value)
  local meta = type(value) == "table" and getmetatable(value)
  return type(meta) == "table" and rawget(meta, "call") or value
end

local function is_named(value)
  return type(value) == "function" or require("gpipe.nn.class").info(value) ~= nil
end

-- The functions and classes of a table of names; `only` chooses.
local function of_table(prefix, place, otherwise, only)
  local list = {}
  for _, name in ipairs(names.list(place)) do
    local value = callee(place[name])
    local section = is_named(value) and section_of(value, otherwise)
    if section and (not only or only(name, value)) then
      list[#list + 1] = { name = name, path = prefix .. name, section = section,
        entry = documentation.entry(value) }
    end
  end
  return list
end

-- The documentation of a method, without the object itself.
local function entry_of_method(value)
  local entry = documentation.entry(value)
  if not entry or entry.colon then return entry end
  local object = entry.signature:match "%(([%w_]+)"
  local lines = {}
  for _, line in ipairs(entry.comment) do
    if line:match "^%-%-%-@param ([%w_]+)" ~= object then lines[#lines + 1] = line end
  end
  return { signature = entry.signature:gsub("%([%w_]+,? ?", "("), comment = lines, colon = true }
end

-- The methods of an object or class; `hidden` are those that users do not call.
local function of_methods(prefix, place, section, class, hidden)
  local list = {}
  for _, name in ipairs(names.list(place, true)) do
    local value = names.field(place, name)
    local public = not name:find "^__" and not (hidden and hidden[name])
    if public and type(value) == "function" then
      list[#list + 1] = { name = name, path = prefix .. name, section = section, class = class,
        entry = entry_of_method(value) }
    end
  end
  return list
end

local function of_tensors()
  local list, written = {}, comments.of_tensors()
  for _, name in ipairs(names.list(require("gpipe.core").methods, true)) do
    local entry = written[name]
    list[#list + 1] = { name = name, path = "t:" .. name, class = "gpipe.Tensor", entry = entry,
      section = "Methods: " .. (entry and entry.section or "others") }
  end
  for name, path in pairs { __index = "t[{..}]", __newindex = "t[{..}] = v" } do
    list[#list + 1] = { name = name, path = path, class = "gpipe.Tensor", entry = written[name],
      section = "Elements by position" }
  end
  return list
end

local function join(...)
  local all = {}
  for _, list in ipairs { ... } do table.move(list, 1, #list, #all + 1, all) end
  return all
end

-- ---- pages -------------------------------------------------------------------------------------

local MODULE = { init = true, attribute_name = true } -- init documents the class itself

local OF_GP = { -- names on other pages; the rest are about tensors
  pipeline = "pipeline", dry_run = "pipeline", compile = "pipeline", profile = "pipeline",
  balance_by_time = "pipeline", balance_by_size = "pipeline", plan = "pipeline",
  cluster = "pipeline", on_stop = "machine",
  devices = "machine", memory = "machine", scope = "machine", save = "machine", load = "machine",
  tokenizer = "data", sweep = "sweep", runs = "runs", run = "runs",
}

-- Find the class, by name, of the objects that a function makes: among the upvalues of that
-- function and of those it calls.
local function class_of(f, name, depth)
  for i = 1, math.huge do
    local upvalue, held = debug.getupvalue(f, i)
    if not upvalue then return nil end
    if type(held) == "table" and rawget(held, "__name") == name then return held end
    local inner = type(held) == "function" and depth > 0 and class_of(held, name, depth - 1)
    if inner then return inner end
  end
end

local function on_page(page)
  return function(name) return (OF_GP[name] or "tensors") == page end
end

local function of_layers(gp)
  return join(of_table("nn.", gp.nn, "Modules"), of_table("nn.init.", gp.nn.init, "Initial values"),
    of_table("gp.models.", gp.models, "Models"),
    of_table("gp.models.gpt2.", gp.models.gpt2, "Models"),
    of_methods("m:", gp.nn.Module, "Methods of modules", "nn.Module", MODULE))
end

local function of_pipelines(gp)
  local pipe <close> = gp.pipeline(gp.nn.Sequential { gp.nn.Linear(1, 1) }, {})
  return join(of_table("gp.", gp, "Making pipelines", on_page "pipeline"),
    of_methods("pipe:", pipe, "Methods of pipelines", "gpipe.Pipeline"),
    of_methods("plan:", class_of(gp.dry_run, "gpipe.DryRun", 2), "Methods of gp.dry_run's plans",
      "gpipe.DryRun"),
    of_methods("plan:", require("gpipe.plan.object").methods, "Methods of gp.plan's plans",
      "gpipe.Plan"),
    of_methods("profile:", require("gpipe.profile.object").methods,
      "Methods of gp.profile's profiles", "gpipe.ModelProfile"),
    of_methods("compiled:", class_of(gp.compile, "gpipe.Compiled", 2),
      "Methods of compiled functions", "gpipe.Compiled"))
end

local function of_optimizers(gp)
  local layer = gp.nn.Linear(1, 1)
  local opt = gp.optim.SGD(layer:parameters(), { lr = 1 })
  return join(of_table("optim.", gp.optim, "Optimizers"),
    of_methods("opt:", opt, "Methods of optimizers", "gpipe.Optimizer"),
    of_table("optim.schedule.", gp.optim.schedule, "Learning rates"))
end

local function of_data(gp)
  local d = gp.data.tensors(gp.ones { 2 }, gp.ones { 2 })
  return join(of_table("gp.data.", gp.data, "Data sets"),
    of_methods("d:", d, "Methods of data sets", "gpipe.Dataset"),
    of_table("gp.", gp, "Texts", on_page "data"),
    of_methods("tok:", require("gpipe.tokenizer.class").methods, "Methods of tokenizers",
      "gpipe.Tokenizer"))
end

local function of_schedules(gp)
  local s = gp.schedule.build("gpipe", { devices = 1, chunks = 1 })
  return join(of_table("gp.schedule.", gp.schedule, "Schedules"),
    of_methods("s:", getmetatable(s), "Methods of schedules", "gpipe.Schedule",
      { new = true, is = true, parsed = true }),
    of_methods("simulation:", require "gpipe.schedule.simulation", "Methods of simulations",
      "gpipe.Simulation", { new = true }))
end

local function of_sweeps(gp)
  return join(of_table("gp.", gp, "Sweeps", on_page "sweep"),
    of_table("gp.sweep.", gp.sweep, "What parameters are drawn from"),
    of_methods("sweep:", require("gpipe.sweep.object").methods, "Methods of sweeps", "gpipe.Sweep",
      { suggest = true, goal = true, how = true }),
    of_methods("trial:", require("gpipe.sweep.trial").methods, "Methods of trials", "gpipe.Trial"))
end

local OF_THE_LOOP = { begin_step = true, end_step = true, close = true } -- run:steps calls them

local function of_runs(gp)
  return join(of_table("gp.", gp, "Making and looking at runs", on_page "runs"),
    of_methods("run:", class_of(gp.run, "gpipe.Run", 3), "Methods of gp.run", "gpipe.Run",
      OF_THE_LOOP),
    of_table("gp.checkpoint.", gp.checkpoint, "Checkpoints"),
    of_table("flags.", require "gpipe.flags", "Flags of scripts: require \"gpipe.flags\""),
    of_table("progress.", require "gpipe.progress", "Lines of progress: require \"gpipe.progress\"",
      function(name) return name ~= "now" end), -- core.seconds
    of_methods("runs:", require("gpipe.run_reader").methods, "Methods of lists of runs",
      "gpipe.Runs"),
    of_methods("r:", require("gpipe.run_reader.folder").methods, "Methods of runs",
      "gpipe.RunFolder"))
end

local PARTS = { -- of a training loop, as they are called there
  { "accumulate", "accumulate", "Accumulate" }, { "best", "best", "Best" },
  { "divergence", "watch", "Divergence" }, { "early_stopping", "stop", "EarlyStopping" },
  { "ema", "ema", "Ema" }, { "events", "events", "Events" }, { "every", "due", "Every" },
  { "smooth", "smooth", "Smooth" },
}

local function of_training(gp)
  local lists = { of_table("gp.train.", gp.train, "Parts of a training loop") }
  for _, part in ipairs(PARTS) do
    lists[#lists + 1] = of_methods(part[2] .. ":", require("gpipe.train." .. part[1]).methods,
      "Methods of gp.train." .. part[1], "gpipe." .. part[3])
  end
  return join(table.unpack(lists))
end

local pages
--- The pages of the reference: {file, title, list of gpipe.DocName}.
---@return {file: string, title: string, names: gpipe.DocName[]}[]
function catalog.pages()
  if pages then return pages end
  local gp = require "gpipe"
  pages = {
    { file = "tensors", title = "Tensors",
      names = join(of_table("gp.", gp, "Functions of tensors", on_page "tensors"), of_tensors(),
        of_table("gp.linalg.", gp.linalg, "Linear algebra")) },
    { file = "layers", title = "Layers, losses and models", names = of_layers(gp) },
    { file = "pipeline", title = "Pipelines", names = of_pipelines(gp) },
    { file = "optim", title = "Optimizers", names = of_optimizers(gp) },
    { file = "data", title = "Data", names = of_data(gp) },
    { file = "schedule", title = "Schedules", names = of_schedules(gp) },
    { file = "train", title = "Parts of a training loop", names = of_training(gp) },
    { file = "sweep", title = "Sweeps", names = of_sweeps(gp) },
    { file = "runs", title = "Training runs", names = of_runs(gp) },
    { file = "machine", title = "The machine, memory and files",
      names = of_table("gp.", gp, "The machine", on_page "machine") },
  }
  return pages
end

--- The documentation of a name, given as a full path; else that of the first name that is equal.
---@param path string "pipe:step" or "step"
---@return gpipe.DocEntry?
function catalog.find(path)
  local first
  for _, page in ipairs(catalog.pages()) do
    for _, known in ipairs(page.names) do
      if known.path == path then return known.entry end
      if known.name == path then first = first or known.entry end
    end
  end
  return first
end

return catalog
