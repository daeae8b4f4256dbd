"""tests/golden/layers.py - writes tests/golden/layers.lua: what PyTorch computes for every layer and
loss, for tests/spec/nn/golden_spec.lua (the other norms are in norms.py, options in options.py).

    python tests/golden/layers.py > tests/golden/layers.lua

Inputs and parameters are not in the file: both sides make them by the formula of numbers(). A case
gives the outputs, the gradients of sum(output * weights) for the inputs and for the parameters;
of a long tensor at most KEPT elements, evenly spaced.
"""
import torch
from torch import nn
import torch.nn.functional as F

KEPT = 12
torch.set_num_threads(1)


def numbers(k, shape, scale=1.0, positive=False):
    """Element i of tensor k: ((31 i^2 + 7919 i + 104729 k) mod 1009) / 1009, in -scale .. scale."""
    n = 1
    for size in shape:
        n *= size
    raw = [((31 * i * i + 7919 * i + 104729 * k) % 1009) / 1009 for i in range(n)]
    values = [scale * (v if positive else 2 * v - 1) for v in raw]
    return torch.tensor(values, dtype=torch.float64).to(torch.float32).reshape(shape)


def ids(k, shape, below):
    n = 1
    for size in shape:
        n *= size
    return torch.tensor([(31 * i * i + 7919 * i + 104729 * k) % below for i in range(n)]).reshape(shape)


# ---- cases -------------------------------------------------------------------------------------
# Each case: (layer in Lua, layer in PyTorch, inputs, how it is called if not layer(*inputs)).
# An input is a shape (numbers), ("ids", shape, below) or ("positive", shape); a "!" in front: it
# takes no gradient.

CASES = []


def case(lua, module, inputs, call=None):
    CASES.append((lua, module, inputs, call))


def states(layer, x):
    """An LSTM or GRU, batch first: states [B, layers * directions, hidden]."""
    y, last = layer(x)
    last = last if isinstance(last, tuple) else (last,)
    return (y, *[s.transpose(0, 1) for s in last])


def states_from(layer, x, h, *c):
    first = [s.transpose(0, 1).contiguous() for s in (h, *c)]
    y, last = layer(x, tuple(first) if c else first[0])
    last = last if isinstance(last, tuple) else (last,)
    return (y, *[s.transpose(0, 1) for s in last])


def linear():
    case("nn.Linear(5, 3)", nn.Linear(5, 3), [(7, 5)])
    case("nn.Linear(5, 3, {bias = false})", nn.Linear(5, 3, bias=False), [(2, 3, 5)])
    case("nn.Embedding(7, 3)", nn.Embedding(7, 3), [("ids", (2, 5), 7)])


def convolutions():
    case("nn.Conv1d(3, 4, 3, {stride = 2, padding = 1})", nn.Conv1d(3, 4, 3, 2, 1), [(2, 3, 7)])
    case("nn.Conv1d(2, 4, 4, {padding = \"same\"})", nn.Conv1d(2, 4, 4, padding="same"), [(2, 2, 9)])
    case("nn.Conv2d(3, 4, {3, 2}, {stride = {2, 1}, padding = {1, 0}, dilation = {1, 2}})",
         nn.Conv2d(3, 4, (3, 2), (2, 1), (1, 0), (1, 2)), [(2, 3, 7, 5)])
    case("nn.Conv2d(4, 6, 3, {groups = 2, bias = false})", nn.Conv2d(4, 6, 3, groups=2, bias=False), [(1, 4, 5, 7)])
    case("nn.ConvTranspose2d(4, 6, 3, {stride = 2, padding = 1, output_padding = 1, groups = 2})",
         nn.ConvTranspose2d(4, 6, 3, 2, 1, 1, groups=2), [(2, 4, 3, 5)])


def pools():
    case("nn.MaxPool1d(3, {stride = 2})", nn.MaxPool1d(3, 2), [(2, 3, 9)])
    case("nn.MaxPool2d(3, {stride = 2, padding = 1})", nn.MaxPool2d(3, 2, 1), [(2, 3, 7, 5)])
    case("nn.MaxPool2d(2, {dilation = 2, ceil_mode = true})", nn.MaxPool2d(2, dilation=2, ceil_mode=True), [(1, 2, 8, 7)])
    case("nn.AvgPool1d(3, {padding = 1})", nn.AvgPool1d(3, padding=1), [(2, 3, 8)])
    case("nn.AvgPool2d(3, {stride = 2, padding = 1, count_include_pad = false})",
         nn.AvgPool2d(3, 2, 1, count_include_pad=False), [(2, 3, 7, 5)])
    case("nn.AdaptiveAvgPool1d(3)", nn.AdaptiveAvgPool1d(3), [(2, 3, 7)])
    case("nn.AdaptiveAvgPool2d({3, 2})", nn.AdaptiveAvgPool2d((3, 2)), [(2, 3, 7, 5)])
    case("nn.AdaptiveMaxPool1d(3)", nn.AdaptiveMaxPool1d(3), [(2, 3, 7)])
    case("nn.AdaptiveMaxPool2d({3, 2})", nn.AdaptiveMaxPool2d((3, 2)), [(2, 3, 7, 5)])
    case('nn.Upsample {scale = 2, mode = "nearest"}', nn.Upsample(scale_factor=2), [(1, 3, 3, 5)])
    case('nn.Upsample {size = {5, 7}, mode = "bilinear"}', nn.Upsample(size=(5, 7), mode="bilinear"), [(2, 2, 3, 4)])
    case("nn.ZeroPad2d(2)", nn.ZeroPad2d(2), [(1, 2, 3, 5)])
    case("nn.ReflectionPad2d(1)", nn.ReflectionPad2d(1), [(1, 2, 3, 5)])


def layer_norm():
    case("nn.LayerNorm(7)", nn.LayerNorm(7), [(3, 5, 7)])


def activations():
    for lua, module in [
            ("nn.ReLU()", nn.ReLU()), ('nn.GELU("erf")', nn.GELU()), ('nn.GELU("tanh")', nn.GELU("tanh")),
            ("nn.SiLU()", nn.SiLU()), ("nn.Tanh()", nn.Tanh()), ("nn.Sigmoid()", nn.Sigmoid()),
            ("nn.ReLU6()", nn.ReLU6()), ("nn.LeakyReLU(0.1)", nn.LeakyReLU(0.1)), ("nn.ELU(0.5)", nn.ELU(0.5)),
            ("nn.Softplus(2, 5)", nn.Softplus(2, 5)), ("nn.Hardsigmoid()", nn.Hardsigmoid()),
            ("nn.Hardswish()", nn.Hardswish()), ("nn.Softmax(2)", nn.Softmax(1)), ("nn.LogSoftmax(-1)", nn.LogSoftmax(-1))]:
        case(lua, module, [("wide", (3, 7))])


def losses():
    rows = (5, 7)
    case("nn.CrossEntropyLoss {}", nn.CrossEntropyLoss(), [rows, ("ids", (5,), 7)])
    case("nn.CrossEntropyLoss {label_smoothing = 0.1, ignore_index = 3}",
         nn.CrossEntropyLoss(label_smoothing=0.1, ignore_index=3), [rows, ("ids", (5,), 7)])
    case("nn.NLLLoss {}", nn.NLLLoss(), [rows, ("ids", (5,), 7)])
    for lua, module in [
            ("nn.MSELoss {}", nn.MSELoss()), ("nn.L1Loss {}", nn.L1Loss()),
            ("nn.SmoothL1Loss {beta = 0.5}", nn.SmoothL1Loss(beta=0.5)), ("nn.HuberLoss {delta = 0.5}", nn.HuberLoss(delta=0.5)),
            ('nn.MSELoss {reduction = "sum"}', nn.MSELoss(reduction="sum"))]:
        case(lua, module, [rows, ("fixed", rows)])
    case("nn.BCELoss {}", nn.BCELoss(), [("positive", rows), ("share", rows)])
    case("nn.BCEWithLogitsLoss {}", nn.BCEWithLogitsLoss(), [rows, ("share", rows)])
    case('nn.KLDivLoss {reduction = "batchmean"}', nn.KLDivLoss(reduction="batchmean"), [rows, ("share", rows)])


def recurrent():
    for name in ["LSTM", "GRU", "RNN"]:
        kind = getattr(nn, name)
        case(f"nn.{name}(3, 5)", kind(3, 5, batch_first=True), [(3, 7, 3)], lambda m, x: m(x)[0])
        case(f"nn.{name}(3, 4, {{layers = 2, bidirectional = true, states = true}})",
             kind(3, 4, 2, bidirectional=True, batch_first=True), [(2, 5, 3)], states)
        first = [(3, 2, 4)] * (2 if name == "LSTM" else 1)
        case(f"nn.{name}(3, 4, {{layers = 2, bias = false, states = true}})",
             kind(3, 4, 2, bias=False, batch_first=True), [(3, 5, 3), *first], states_from)
        case(f"nn.{name}(2, 3)", kind(2, 3, batch_first=True), [(1, 1, 2)], lambda m, x: m(x)[0])
    case('nn.RNN(3, 5, {nonlinearity = "relu"})', nn.RNN(3, 5, nonlinearity="relu", batch_first=True),
         [(3, 7, 3)], lambda m, x: m(x)[0])


class Grouped(nn.Module):
    """Attention with fewer heads of keys and rotary embedding, from PyTorch's functions."""

    def __init__(self, dim, heads, kv_heads, style):
        super().__init__()
        self.heads, self.kv_heads, self.style, self.size = heads, kv_heads, style, dim // heads
        rows = (heads + 2 * kv_heads) * self.size
        self.in_proj_weight = nn.Parameter(torch.empty(rows, dim))
        self.in_proj_bias = nn.Parameter(torch.empty(rows))
        self.out_proj = nn.Linear(dim, dim)

    def turn(self, x):
        """x [B, H, T, D]; a pair of coordinates is a complex number."""
        length, half = x.shape[2], self.size // 2
        angles = torch.outer(torch.arange(length), 10000.0 ** (-2 * torch.arange(half) / self.size))
        wide = x.unflatten(3, (half, 2)) if self.style == "pairs" else torch.stack(x.split(half, 3), -1)
        turned = torch.view_as_real(torch.view_as_complex(wide.contiguous()) * torch.polar(torch.ones_like(angles), angles))
        return turned.flatten(3) if self.style == "pairs" else torch.cat((turned[..., 0], turned[..., 1]), 3)

    def forward(self, x):
        all = F.linear(x, self.in_proj_weight, self.in_proj_bias).unflatten(2, (-1, self.size)).transpose(1, 2)
        q, k, v = all.split((self.heads, self.kv_heads, self.kv_heads), 1)
        if self.style:
            q, k = self.turn(q), self.turn(k)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.out_proj(y.transpose(1, 2).flatten(2))


class Named(nn.Module):
    """The same with the names that nn.CausalSelfAttention has."""

    NAMES = {"in_proj_weight": "qkv.weight", "in_proj_bias": "qkv.bias",
             "out_proj.weight": "proj.weight", "out_proj.bias": "proj.bias"}

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def named_parameters(self):
        return [(self.NAMES[name], p) for name, p in self.layer.named_parameters()]

    def parameters(self):
        return self.layer.parameters()

    def forward(self, x):
        return self.layer(x)


def causal(length):
    return torch.ones(length, length).triu(1).bool()


def attention():
    def made(**options):
        return nn.MultiheadAttention(8, 2, batch_first=True, **options)
    case("nn.MultiheadAttention(8, 2)", made(), [(2, 5, 8)], lambda m, x: m(x, x, x)[0])
    case("nn.MultiheadAttention(8, 2, {causal = true})", made(), [(2, 5, 8)],
         lambda m, x: m(x, x, x, attn_mask=causal(5))[0])
    case("nn.MultiheadAttention(8, 2, {bias = false})", made(bias=False), [(2, 3, 8), (2, 5, 8), (2, 5, 8)],
         lambda m, q, k, v: m(q, k, v)[0])
    case("called(nn.MultiheadAttention(8, 2), function(m, q, k, mask) return m(q, k, nil, mask) end)", made(),
         [(2, 3, 8), (2, 5, 8), ("fixed", (3, 5))], lambda m, q, k, mask: m(q, k, k, attn_mask=mask)[0])
    case("called(nn.MultiheadAttention(8, 2), function(m, x, mask) return m(x, nil, nil, mask:gt(-0.5)) end)", made(),
         [(2, 5, 8), ("fixed", (5, 5))], lambda m, x, mask: m(x, x, x, attn_mask=mask <= -0.5)[0])
    case("nn.MultiheadAttention(12, 6, {kv_heads = 2, causal = true})", Grouped(12, 6, 2, None), [(2, 5, 12)])
    for style in ["halves", "pairs"]:
        case(f'nn.MultiheadAttention(12, 3, {{kv_heads = 1, causal = true, rotary = {{style = "{style}"}}}})',
             Grouped(12, 3, 1, style), [(2, 5, 12)])
    case("nn.CausalSelfAttention(12, 6, {kv_heads = 2})", Named(Grouped(12, 6, 2, None)), [(2, 5, 12)])
    case("nn.TransformerEncoderLayer(8, 2, 7, {dropout = 0})",
         nn.TransformerEncoderLayer(8, 2, 7, 0.0, batch_first=True), [(2, 5, 8)])
    case('nn.TransformerEncoderLayer(8, 2, 7, {dropout = 0, norm_first = true, activation = "gelu", causal = true})',
         nn.TransformerEncoderLayer(8, 2, 7, 0.0, "gelu", batch_first=True, norm_first=True), [(2, 5, 8)],
         lambda m, x: m(x, causal(5)))
    case("nn.TransformerDecoderLayer(8, 2, 7, {dropout = 0, causal = true})",
         nn.TransformerDecoderLayer(8, 2, 7, 0.0, batch_first=True), [(2, 3, 8), (2, 5, 8)],
         lambda m, x, memory: m(x, memory, causal(3)))
    case('nn.TransformerDecoderLayer(8, 2, 7, {dropout = 0, norm_first = true, activation = "gelu"})',
         nn.TransformerDecoderLayer(8, 2, 7, 0.0, "gelu", batch_first=True, norm_first=True), [(2, 3, 8), (2, 5, 8)])


def make_cases():
    for group in [linear, convolutions, pools, layer_norm, activations, losses, recurrent, attention]:
        group()


# ---- what they compute ---------------------------------------------------------------------------

def make_input(k, spec):
    kind, shape = (spec[0], spec[1]) if isinstance(spec[0], str) else ("numbers", spec)
    if kind == "ids":
        return ids(k, shape, spec[2]), {"kind": kind, "shape": shape, "below": spec[2]}
    x = numbers(k, shape, 4.0 if kind == "wide" else 1.0, kind in ("positive", "share"))
    if kind == "positive":
        x = x * 0.9 + 0.05
    if kind not in ("fixed", "share"):
        x.requires_grad_(True)
    return x, {"kind": kind, "shape": shape}


def fill(module):
    """Parameters get numbers of tensors 100, 101, ... in order of declaration."""
    names = []
    with torch.no_grad():
        for i, (name, p) in enumerate(module.named_parameters()):
            p.copy_(numbers(100 + i, tuple(p.shape), 0.5))
            names.append((name, tuple(p.shape)))
    return names


def compute(lua, module, inputs, call):
    names = fill(module)
    made = [make_input(1 + i, spec) for i, spec in enumerate(inputs)]
    xs = [x for x, _ in made]
    outputs = call(module, *xs) if call else module(*xs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    total = sum((y * numbers(50 + i, tuple(y.shape))).sum() for i, y in enumerate(outputs))
    total.backward()
    return {
        "layer": lua,
        "inputs": [spec for _, spec in made],
        "outputs": list(outputs),
        "gradients": [x.grad for x in xs if x.requires_grad],
        "parameters": [{"name": n, "shape": s, "gradient": p.grad}
                       for (n, s), p in zip(names, module.parameters())],
    }


# ---- writing Lua ---------------------------------------------------------------------------------

def sample(t):
    """{shape = {...}, every = n, v, v, ...}: elements 0, n, 2 n, ..."""
    flat = t.detach().reshape(-1)
    every = max(1, -(-flat.numel() // KEPT))
    shape = ", ".join(str(s) for s in t.shape)
    values = ", ".join("%.9g" % v for v in flat[::every].tolist())
    return f"{{ shape = {{ {shape} }}, every = {every}, {values} }}"


def text(value):
    if isinstance(value, torch.Tensor):
        return sample(value)
    if isinstance(value, str):
        return "[[" + value + "]]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {text(v)}" for k, v in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "{ " + ", ".join(text(v) for v in value) + " }" if value else "{}"
    return "%.9g" % value


def main(name="layers"):
    make_cases()
    print(f"-- tests/golden/{name}.lua - written by tests/golden/{name}.py with PyTorch "
          + torch.__version__.split("+")[0] + "; not edited.\n-- luacheck: no max line length\n\nreturn {")
    for lua, module, inputs, call in CASES:
        torch.manual_seed(0)
        print("  {")
        for key, value in compute(lua, module, inputs, call).items():
            print(f"    {key} = {text(value)},")
        print("  },")
    print("}")


if __name__ == "__main__":
    main()
