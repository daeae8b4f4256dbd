"""tests/golden/options.py - writes tests/golden/options.lua: options of layers and losses, and the
smaller layers, for tests/spec/nn/golden_spec.lua. The cases are as those of layers.py.

    python tests/golden/options.py > tests/golden/options.lua
"""
import layers
import torch
from torch import nn
from layers import case

WEIGHT = torch.tensor([0.5, 1.0, 2.0, 0.0, 3.0, 0.25, 1.5])
LIST = "{0.5, 1, 2, 0, 3, 0.25, 1.5}"


def weighted():
    rows, ids = (5, 7), ("ids", (5,), 7)
    for lua, options in [
            ("", {}), (", ignore_index = 3", {"ignore_index": 3}), (', reduction = "sum"', {"reduction": "sum"}),
            (', reduction = "none"', {"reduction": "none"})]:
        case(f"nn.NLLLoss {{weight = {LIST}{lua}}}", nn.NLLLoss(WEIGHT, **options), [rows, ids])
        case(f"nn.CrossEntropyLoss {{weight = {LIST}{lua}}}", nn.CrossEntropyLoss(WEIGHT, **options), [rows, ids])
        case(f"nn.CrossEntropyLoss {{weight = {LIST}, label_smoothing = 0.2{lua}}}",
             nn.CrossEntropyLoss(WEIGHT, label_smoothing=0.2, **options), [rows, ids])
    case(f"nn.BCEWithLogitsLoss {{pos_weight = {LIST}}}", nn.BCEWithLogitsLoss(pos_weight=WEIGHT), [rows, ("share", rows)])
    case(f"nn.BCEWithLogitsLoss {{weight = {LIST}, pos_weight = 2}}",
         nn.BCEWithLogitsLoss(WEIGHT, pos_weight=torch.tensor(2.0)), [rows, ("share", rows)])
    case(f'nn.BCELoss {{weight = {LIST}, reduction = "none"}}', nn.BCELoss(WEIGHT, reduction="none"),
         [("positive", rows), ("share", rows)])


def convolutions():
    image = [(2, 4, 9, 7)]
    for lua, options in [
            ("", {}), ("stride = 2", {"stride": 2}), ("stride = {1, 3}, padding = {2, 1}", {"stride": (1, 3), "padding": (2, 1)}),
            ("dilation = 2, padding = 2", {"dilation": 2, "padding": 2}), ("dilation = {3, 1}", {"dilation": (3, 1)}),
            ("groups = 2", {"groups": 2}), ("groups = 4, stride = 2, padding = 1", {"groups": 4, "stride": 2, "padding": 1}),
            ("groups = 2, dilation = 2, padding = 2, bias = false", {"groups": 2, "dilation": 2, "padding": 2, "bias": False}),
            ('padding = "valid"', {"padding": "valid"}), ('padding = "same", dilation = 2', {"padding": "same", "dilation": 2})]:
        case(f"nn.Conv2d(4, 8, 3, {{{lua}}})", nn.Conv2d(4, 8, 3, **options), image)
    case("nn.Conv2d(4, 4, {1, 5}, {padding = {0, 2}, groups = 4})", nn.Conv2d(4, 4, (1, 5), padding=(0, 2), groups=4), image)
    case("nn.Conv2d(4, 3, 1, {stride = 2})", nn.Conv2d(4, 3, 1, 2), image)
    for lua, options in [
            ("stride = 2", {"stride": 2}), ("stride = {2, 3}, padding = 1", {"stride": (2, 3), "padding": 1}),
            ("dilation = 2, stride = 2, output_padding = 1", {"dilation": 2, "stride": 2, "output_padding": 1}), ("groups = 2, bias = false", {"groups": 2, "bias": False})]:
        case(f"nn.ConvTranspose2d(4, 6, 3, {{{lua}}})", nn.ConvTranspose2d(4, 6, 3, **options), [(2, 4, 4, 5)])
    case("nn.Conv1d(4, 6, 3, {dilation = 2, groups = 2, stride = 2})", nn.Conv1d(4, 6, 3, 2, dilation=2, groups=2), [(2, 4, 11)])
    case("nn.ConvTranspose1d(4, 6, 3, {stride = 2, padding = 1, output_padding = 1, groups = 2})",
         nn.ConvTranspose1d(4, 6, 3, 2, 1, 1, 2), [(2, 4, 5)])


def pools():
    image = [(2, 3, 8, 7)]
    for lua, options in [
            ("ceil_mode = true", {"ceil_mode": True}), ("stride = 1", {"stride": 1}),
            ("stride = 2, padding = 1, ceil_mode = true", {"stride": 2, "padding": 1, "ceil_mode": True}),
            ("stride = {1, 2}, padding = {0, 1}", {"stride": (1, 2), "padding": (0, 1)})]:
        case(f"nn.MaxPool2d(3, {{{lua}}})", nn.MaxPool2d(3, **options), image)
        case(f"nn.AvgPool2d(3, {{{lua}}})", nn.AvgPool2d(3, **options), image)
        case(f"nn.AvgPool2d(3, {{{lua}, count_include_pad = false}})", nn.AvgPool2d(3, count_include_pad=False, **options), image)
    case("nn.MaxPool2d({2, 3}, {stride = 2, dilation = {2, 1}})", nn.MaxPool2d((2, 3), 2, dilation=(2, 1)), image)
    case("nn.MaxPool1d(3, {stride = 2, padding = 1, ceil_mode = true})", nn.MaxPool1d(3, 2, 1, ceil_mode=True), [(2, 3, 8)])
    case("nn.AvgPool1d(3, {stride = 2, padding = 1, ceil_mode = true, count_include_pad = false})",
         nn.AvgPool1d(3, 2, 1, True, False), [(2, 3, 8)])
    case("nn.AdaptiveAvgPool2d({8, 3})", nn.AdaptiveAvgPool2d((8, 3)), image)
    case("nn.AdaptiveMaxPool2d({5, 7})", nn.AdaptiveMaxPool2d((5, 7)), image)


def sizes():
    image = [(2, 3, 4, 5)]
    for size, scale in [("size = {7, 9}", {"size": (7, 9)}), ("size = {3, 2}", {"size": (3, 2)}), ("size = {1, 1}", {"size": (1, 1)}),
                        ("scale = 2", {"scale_factor": 2}), ("scale = {2.6, 1.5}", {"scale_factor": (2.6, 1.5)}), ("scale = 0.6", {"scale_factor": 0.6})]:
        case(f"nn.Upsample {{{size}}}", nn.Upsample(**scale), image)
        case(f'nn.Upsample {{{size}, mode = "bilinear"}}', nn.Upsample(mode="bilinear", **scale), image)
        case(f'nn.Upsample {{{size}, mode = "bilinear", align_corners = true}}',
             nn.Upsample(mode="bilinear", align_corners=True, **scale), image)
    case("nn.ZeroPad2d({1, 2, 0, 3})", nn.ZeroPad2d((1, 2, 0, 3)), image)
    case("nn.ReflectionPad2d({1, 2, 0, 3})", nn.ReflectionPad2d((1, 2, 0, 3)), image)
    case("nn.ConstantPad2d({1, -1, 0, 2}, 0.5)", nn.ConstantPad2d((1, -1, 0, 2), 0.5), image)
    case("nn.ReplicationPad2d({1, 2, 0, 3})", nn.ReplicationPad2d((1, 2, 0, 3)), image)
    case("nn.CircularPad2d({1, 2, 0, 3})", nn.CircularPad2d((1, 2, 0, 3)), image)
    line = [(2, 3, 5)]
    case("nn.ConstantPad1d({1, 2}, 0.5)", nn.ConstantPad1d((1, 2), 0.5), line)
    case("nn.ZeroPad1d(2)", nn.ZeroPad1d(2), line)
    case("nn.ReflectionPad1d({1, 3})", nn.ReflectionPad1d((1, 3)), line)
    case("nn.ReplicationPad1d({1, 3})", nn.ReplicationPad1d((1, 3)), line)


def functions():
    for lua, module in [
            ("Mish()", nn.Mish()), ("SELU()", nn.SELU()), ("CELU(0.7)", nn.CELU(0.7)), ("Hardtanh(-2, 0.5)", nn.Hardtanh(-2, 0.5)),
            ("Threshold(0.1, 20)", nn.Threshold(0.1, 20)), ("LogSigmoid()", nn.LogSigmoid()), ("Softsign()", nn.Softsign()),
            ("Tanhshrink()", nn.Tanhshrink()), ("Softshrink(0.4)", nn.Softshrink(0.4)), ("Hardshrink()", nn.Hardshrink()),
            ("PReLU()", nn.PReLU()), ("Softmin(1)", nn.Softmin(0))]:
        case("nn." + lua, module, [("wide", (3, 7))])
    case("nn.PReLU(3)", nn.PReLU(3), [("wide", (2, 3, 5))])
    case("nn.GLU()", nn.GLU(), [(3, 8)])
    case("nn.GLU(2)", nn.GLU(1), [(3, 4, 5)])


def others():
    case("nn.Unflatten(2, {2, -1})", nn.Unflatten(1, (2, -1)), [(3, 8)])
    case("nn.PixelShuffle(2)", nn.PixelShuffle(2), [(2, 8, 3, 5)])
    case("nn.PixelUnshuffle(3)", nn.PixelUnshuffle(3), [(2, 2, 6, 9)])
    case("nn.ChannelShuffle(3)", nn.ChannelShuffle(3), [(2, 6, 3, 2)])
    case("nn.InstanceNorm1d(3)", nn.InstanceNorm1d(3), [(2, 3, 7)])
    case("nn.LocalResponseNorm(4, {alpha = 0.1, k = 2})", nn.LocalResponseNorm(4, 0.1, k=2.0), [(2, 7, 3, 3)])
    for mode in ("mean", "sum", "max"):
        case(f'nn.EmbeddingBag(7, 3, {{mode = "{mode}"}})', nn.EmbeddingBag(7, 3, mode=mode), [("ids", (2, 5), 7)])
    two = [(5, 7), (5, 7)]
    case("nn.CosineSimilarity()", nn.CosineSimilarity(), two)
    case("nn.PairwiseDistance()", nn.PairwiseDistance(), two)
    case("nn.PairwiseDistance(1)", nn.PairwiseDistance(1), two)
    case("nn.Bilinear(7, 3, 4)", nn.Bilinear(7, 3, 4), [(5, 7), (5, 3)])


SIGNS = torch.tensor([1.0, -1.0, 1.0, -1.0, -1.0])


class Signed(nn.Module):
    """A loss with the targets SIGNS, of the shape that the outputs have."""

    def __init__(self, loss, expand=False):
        super().__init__()
        self.loss, self.expand = loss, expand

    def forward(self, *inputs):
        target = SIGNS.unsqueeze(1).expand_as(inputs[0]) if self.expand else SIGNS
        return self.loss(*inputs, target)


def margins():
    rows, signs = (5, 7), "gp.tensor {1, -1, 1, -1, -1}"
    wide = f"{signs}:unsqueeze(2):expand {{5, 7}}"

    def signed(lua, loss, count, target=signs, expand=False):
        names = "abc"[:count]
        arguments = ", ".join(names)
        case(f"called(nn.{lua}, function(m, {arguments}) return m({arguments}, {target}) end)", Signed(loss, expand), [rows] * count)

    for lua, options in [("", {}), ("margin = 0.5", {"margin": 0.5}), ('margin = 0.3, reduction = "none"', {"margin": 0.3, "reduction": "none"})]:
        signed(f"CosineEmbeddingLoss {{{lua}}}", nn.CosineEmbeddingLoss(**options), 2)
        signed(f"MarginRankingLoss {{{lua}}}", nn.MarginRankingLoss(**options), 2, wide, True)
        signed(f"HingeEmbeddingLoss {{{lua}}}", nn.HingeEmbeddingLoss(**options), 1, wide, True)
    signed("SoftMarginLoss {}", nn.SoftMarginLoss(), 1, wide, True)
    for lua, options in [("", {}), ("margin = 0.5, p = 1", {"margin": 0.5, "p": 1}), ("swap = true", {"swap": True})]:
        case(f"nn.TripletMarginLoss {{{lua}}}", nn.TripletMarginLoss(**options), [rows] * 3)
    case("nn.PoissonNLLLoss {}", nn.PoissonNLLLoss(), [rows, ("share", rows)])
    case("nn.PoissonNLLLoss {log_input = false}", nn.PoissonNLLLoss(False), [("positive", rows), ("share", rows)])


def make_cases():
    for group in [weighted, convolutions, pools, sizes, functions, others, margins]:
        group()


layers.make_cases = make_cases
layers.main("options")
