"""tests/golden/sequences.py - writes tests/golden/sequences.lua: recurrent layers over rows of several
lengths, cells, stacks of Transformer layers with masks, and small layers, for
tests/spec/nn/golden_spec.lua. The cases are as those of layers.py.

    python tests/golden/sequences.py > tests/golden/sequences.lua
"""
import layers
import torch
from torch import nn
from layers import case
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

LENGTHS = [5, 1, 3, 4]


def packed(layer, x, first=None):
    y, last = layer(pack_padded_sequence(x, torch.tensor(LENGTHS), True, enforce_sorted=False), first)
    y, _ = pad_packed_sequence(y, True, total_length=x.shape[1])
    last = last if isinstance(last, tuple) else (last,)
    return (y, *[s.transpose(0, 1) for s in last])


def packed_from(layer, x, h, *c):
    first = [s.transpose(0, 1).contiguous() for s in (h, *c)]
    return packed(layer, x, tuple(first) if c else first[0])


def lengths():
    given = "gp.tensor({5, 1, 3, 4}, {dtype = \"i64\"})"
    for name in ["LSTM", "GRU", "RNN"]:
        kind, count = getattr(nn, name), 2 if name == "LSTM" else 1
        case(f"called(nn.{name}(3, 2, {{states = true}}), function(m, x) return m(x, {given}) end)", kind(3, 2, batch_first=True), [(4, 6, 3)], packed)
        case(f"called(nn.{name}(3, 2, {{layers = 2, bidirectional = true, states = true}}), function(m, x) return m(x, {given}) end)",
             kind(3, 2, 2, bidirectional=True, batch_first=True), [(4, 6, 3)], packed)
        names = "x, h, c" if count == 2 else "x, h"
        case(f"called(nn.{name}(3, 2, {{layers = 2, bidirectional = true, states = true}}), function(m, {names}) return m({names}, {given}) end)",
             kind(3, 2, 2, bidirectional=True, batch_first=True), [(4, 6, 3)] + [(4, 4, 2)] * count, packed_from)


def cells():
    case("nn.LSTMCell(3, 4)", nn.LSTMCell(3, 4), [(2, 3)])
    case("nn.LSTMCell(3, 4, {bias = false})", nn.LSTMCell(3, 4, False), [(2, 3), (2, 4), (2, 4)], lambda m, x, h, c: m(x, (h, c)))
    for name in ["GRUCell", "RNNCell"]:
        case(f"nn.{name}(3, 4)", getattr(nn, name)(3, 4), [(2, 3)])
        case(f"nn.{name}(3, 4, {{bias = false}})", getattr(nn, name)(3, 4, False), [(2, 3), (2, 4)])
    case('nn.RNNCell(3, 4, {nonlinearity = "relu"})', nn.RNNCell(3, 4, nonlinearity="relu"), [(2, 3), (2, 4)])


class Stacked(nn.Module):
    """PyTorch's stacks under our names: layers are 1, 2, ..., and a last norm is one of them."""

    def __init__(self, stack, prefixes):
        super().__init__()
        self.stack, self.prefixes = stack, prefixes

    def named_parameters(self):
        return [(self.renamed(name), p) for name, p in self.stack.named_parameters()]

    def renamed(self, name):
        for prefix in self.prefixes:
            if name.startswith(prefix + "layers."):
                number, rest = name[len(prefix + "layers."):].split(".", 1)
                return f"{prefix}{int(number) + 1}.{rest}"
            if name.startswith(prefix + "norm."):
                layers = {n.split(".")[prefix.count(".") + 1] for n, _ in self.stack.named_parameters() if n.startswith(prefix + "layers.")}
                return f"{prefix}{len(layers) + 1}.{name[len(prefix + 'norm.'):]}"
        return name

    def parameters(self):
        return self.stack.parameters()


# Lua's masks: true may attend. The rows see 3 and 5 of five keys; both sides make them from
# numbers.
SEEN = "gp.tensor({{1, 1, 1, 0, 0}, {1, 1, 1, 1, 1}}):gt(0):reshape(2, 1, 1, 5)"
HIDDEN = torch.tensor([[False, False, False, True, True], [False] * 5])
PART = "gp.tensor({{1, 1, 0}, {0, 1, 1}}):gt(0):reshape(2, 1, 1, 3)"
PART_HIDDEN = torch.tensor([[False, False, True], [True, False, False]])


def transformers():
    def encoder(first, layers=3, norm=None):
        layer = nn.TransformerEncoderLayer(8, 2, 7, 0.0, batch_first=True, norm_first=first)
        return nn.TransformerEncoder(layer, layers, norm, enable_nested_tensor=False)

    def decoder(first, norm=None):
        return nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 7, 0.0, batch_first=True, norm_first=first), 2, norm)
    for first in [False, True]:
        options = "{dropout = 0, norm_first = " + str(first).lower() + "}"

        def norm():
            return nn.LayerNorm(8) if first else None
        case(f"called(nn.TransformerEncoder(3, 8, 2, 7, {options}), function(m, x) return m(x, {SEEN}) end)",
             Stacked(encoder(first, 3, norm()), [""]), [(2, 5, 8)], lambda m, x: m.stack(x, src_key_padding_mask=HIDDEN))
        case(f"called(nn.TransformerDecoder(2, 8, 2, 7, {options}), function(m, x, memory) return m(x, memory, {PART}, {SEEN}) end)",
             Stacked(decoder(first, norm()), [""]), [(2, 3, 8), (2, 5, 8)],
             lambda m, x, memory: m.stack(x, memory, tgt_key_padding_mask=PART_HIDDEN, memory_key_padding_mask=HIDDEN))
        case(f"called(nn.TransformerDecoder(2, 8, 2, 7, {options}), function(m, x, memory) return m(x, memory, nil, {SEEN}) end)",
             Stacked(decoder(first, norm()), [""]), [(2, 3, 8), (2, 5, 8)],
             lambda m, x, memory: m.stack(x, memory, memory_key_padding_mask=HIDDEN))
    whole = nn.Transformer(8, 2, 2, 1, 7, 0.0, batch_first=True, activation="gelu")
    case("called(nn.Transformer(8, 2, {encoder_layers = 2, decoder_layers = 1, ff = 7, dropout = 0, activation = \"gelu\", causal = true}), "
         f"function(m, x, y) return m(x, y, {SEEN}, nil, {SEEN}) end)", Stacked(whole, ["encoder.", "decoder."]), [(2, 5, 8), (2, 3, 8)],
         lambda m, x, y: m.stack(x, y, tgt_mask=layers.causal(3), src_key_padding_mask=HIDDEN, memory_key_padding_mask=HIDDEN))
    case("nn.Transformer(8, 2, {encoder_layers = 1, decoder_layers = 2, ff = 7, dropout = 0, norm_first = true})",
         Stacked(nn.Transformer(8, 2, 1, 2, 7, 0.0, batch_first=True, norm_first=True), ["encoder.", "decoder."]),
         [(2, 5, 8), (2, 3, 8)], lambda m, x, y: m.stack(x, y))


def small():
    wide = [("wide", (3, 7))]
    case("nn.RReLU():eval()", nn.RReLU().eval(), wide)
    case("nn.RReLU(0.3, 0.3)", nn.RReLU(0.3, 0.3), wide)
    case("nn.Softmax2d()", nn.Softmax2d(), [(2, 3, 4, 5)])
    case("nn.Dropout3d(0.5):eval()", nn.Dropout3d().eval(), [(2, 3, 2, 2, 3)])
    case("nn.FeatureAlphaDropout(0.5):eval()", nn.FeatureAlphaDropout().eval(), [(2, 3, 5)])


def make_cases():
    for group in [lengths, cells, transformers, small]:
        group()


layers.make_cases = make_cases
layers.main("sequences")
