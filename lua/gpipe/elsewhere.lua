-- lua/gpipe/elsewhere.lua - says what replaces those methods of PyTorch's modules that have no
-- direct counterpart here.

local ways = {}

local WAYS = {
  { "to cuda cpu", "the devices of a model are an option of gp.pipeline" },
  { "float double half bfloat16 type",
    "dtype is an option of layers, precision one of gp.pipeline" },
  { "zero_grad", "optimizers and pipelines have it" },
  { "minimize", "pipe:step(x, y), then opt:step()" },
  { "requires_grad_", "model:freeze(pattern) and model:unfreeze(pattern)" },
  { "named_parameters", "model:parameters() gives names and values" },
  { "named_children", "model:children() gives names and modules" },
  { "named_modules", "model:modules() gives names and modules, print(model) shows all" },
  { "named_buffers", "model:buffers() gives names and values" },
  { "get_submodule get_parameter get_buffer", 'model:get("3.fc.weight") finds by path' },
  { "register_buffer register_parameter",
    "assign nn.Buffer(shape, init) or nn.Parameter(shape, init) to a name of the module" },
  { "register_module", "assign the module to a name, self.fc = nn.Linear(4, 2), or to a place of a "
    .. "plain table" },
  { "add_module append", "nn.Sequential {a, b, c} takes all layers" },
  { "register_forward_hook register_forward_pre_hook register_full_backward_hook "
    .. "register_backward_hook",
    "a layer of one's own calls the other and looks at what it gives" },
  { "compile", "gp.compile takes a function; pipelines compile by themselves" },
}

for _, way in ipairs(WAYS) do
  for word in way[1]:gmatch "%S+" do ways[word] = way[2] end
end

return ways
