"""tests/golden/volumes.py - writes tests/golden/volumes.lua: layers of volumes, paddings, resizing,
unpooling and folding, for tests/spec/nn/golden_spec.lua. The cases are as those of layers.py.

    python tests/golden/volumes.py > tests/golden/volumes.lua
"""
import layers
import torch
from torch import nn
from layers import case


def convolutions():
    x = [(2, 4, 5, 6, 7)]
    case("nn.Conv3d(4, 6, 3)", nn.Conv3d(4, 6, 3), x)
    case("nn.Conv3d(4, 6, {3, 2, 1}, {stride = {2, 1, 3}, padding = {1, 0, 2}, dilation = {2, 3, 1}, groups = 2})",
         nn.Conv3d(4, 6, (3, 2, 1), (2, 1, 3), (1, 0, 2), (2, 3, 1), 2), x)
    case('nn.Conv3d(4, 2, {1, 3, 2}, {padding = "same", bias = false})', nn.Conv3d(4, 2, (1, 3, 2), padding="same", bias=False), x)
    case("nn.ConvTranspose3d(4, 6, 3)", nn.ConvTranspose3d(4, 6, 3), [(2, 4, 2, 3, 4)])
    case("nn.ConvTranspose3d(4, 6, {3, 2, 3}, {stride = {3, 2, 1}, padding = {1, 0, 1}, output_padding = {2, 1, 0}, dilation = {1, 2, 2}, groups = 2})",
         nn.ConvTranspose3d(4, 6, (3, 2, 3), (3, 2, 1), (1, 0, 1), (2, 1, 0), 2, dilation=(1, 2, 2)), [(2, 4, 3, 2, 4)])
    case("nn.ConvTranspose3d(2, 3, {2, 1, 1}, {stride = 3, bias = false})", nn.ConvTranspose3d(2, 3, (2, 1, 1), 3, bias=False), [(1, 2, 2, 2, 3)])
    for mode in ["reflect", "replicate", "circular"]:
        case(f'nn.Conv1d(2, 3, 4, {{padding = 2, padding_mode = "{mode}"}})', nn.Conv1d(2, 3, 4, padding=2, padding_mode=mode), [(2, 2, 7)])
        case(f'nn.Conv2d(2, 3, {{3, 2}}, {{padding = {{1, 2}}, stride = 2, padding_mode = "{mode}"}})',
             nn.Conv2d(2, 3, (3, 2), 2, (1, 2), padding_mode=mode), [(2, 2, 5, 6)])
        case(f'nn.Conv3d(2, 3, 2, {{padding = {{1, 0, 1}}, padding_mode = "{mode}"}})',
             nn.Conv3d(2, 3, 2, padding=(1, 0, 1), padding_mode=mode), [(1, 2, 3, 4, 5)])
    case('nn.Conv2d(2, 3, {3, 2}, {padding = "same", padding_mode = "circular"})',
         nn.Conv2d(2, 3, (3, 2), padding="same", padding_mode="circular"), [(2, 2, 5, 6)])


def pools():
    x = [(2, 3, 5, 6, 7)]
    case("nn.MaxPool3d(2)", nn.MaxPool3d(2), x)
    case("nn.MaxPool3d({3, 2, 3}, {stride = {2, 1, 2}, padding = {1, 0, 1}, dilation = {1, 2, 1}, ceil_mode = true})",
         nn.MaxPool3d((3, 2, 3), (2, 1, 2), (1, 0, 1), (1, 2, 1), ceil_mode=True), x)
    case("nn.AvgPool3d({2, 3, 2}, {stride = 2, padding = {1, 1, 0}, ceil_mode = true})",
         nn.AvgPool3d((2, 3, 2), 2, (1, 1, 0), True), x)
    case("nn.AvgPool3d(3, {padding = 1, count_include_pad = false})", nn.AvgPool3d(3, padding=1, count_include_pad=False), x)
    case("nn.AdaptiveAvgPool3d({2, 4, 3})", nn.AdaptiveAvgPool3d((2, 4, 3)), x)
    case("nn.AdaptiveMaxPool3d({2, 1, 3})", nn.AdaptiveMaxPool3d((2, 1, 3)), x)
    case("nn.LPPool1d(3, 2)", nn.LPPool1d(3, 2), [("positive", (2, 3, 7))])
    case("nn.LPPool2d(2, {3, 2}, {stride = 2, ceil_mode = true})", nn.LPPool2d(2, (3, 2), 2, ceil_mode=True), [("positive", (2, 3, 8, 7))])
    case("nn.LPPool2d(1.5, 3)", nn.LPPool2d(1.5, 3), [("positive", (1, 2, 6, 7))])


def counted(positions):
    """Positions count from 1 in Lua; as numbers, so that they can be compared."""
    return (positions + 1).double()


def unpools():
    floats = "function(m, x) local y, at = m(x) return y, at:to(y.dtype) end"
    for lua, options in [("2", dict(kernel_size=2)), ("3, {stride = 2, padding = 1}", dict(kernel_size=3, stride=2, padding=1)),
                         ("{3, 2}, {stride = {2, 1}, dilation = {1, 2}, ceil_mode = true}",
                          dict(kernel_size=(3, 2), stride=(2, 1), dilation=(1, 2), ceil_mode=True))]:
        opened = lua[:-1] + ", positions = true}" if lua.endswith("}") and "=" in lua else lua + ", {positions = true}"
        case(f"called(nn.MaxPool2d({opened}), {floats})", nn.MaxPool2d(**options, return_indices=True), [(2, 3, 7, 6)],
             lambda m, x: (lambda y, at: (y, counted(at)))(*m(x)))
    case(f"called(nn.MaxPool1d(3, {{stride = 2, padding = 1, positions = true}}), {floats})",
         nn.MaxPool1d(3, 2, 1, return_indices=True), [(2, 3, 8)], lambda m, x: (lambda y, at: (y, counted(at)))(*m(x)))
    case("nn.Sequential {nn.MaxPool2d(2, {positions = true}), nn.MaxUnpool2d(2)}", nn.MaxUnpool2d(2), [(2, 3, 6, 8)],
         lambda m, x: m(*nn.functional.max_pool2d(x, 2, return_indices=True)))
    case("nn.Sequential {nn.MaxPool2d({3, 2}, {positions = true}), nn.MaxUnpool2d({3, 2}, {size = {8, 7}})}", nn.MaxUnpool2d((3, 2)), [(2, 3, 8, 7)],
         lambda m, x: m(*nn.functional.max_pool2d(x, (3, 2), return_indices=True), output_size=(8, 7)))
    case("nn.Sequential {nn.MaxPool1d(3, {positions = true}), nn.MaxUnpool1d(3)}", nn.MaxUnpool1d(3), [(2, 3, 9)],
         lambda m, x: m(*nn.functional.max_pool1d(x, 3, return_indices=True)))


def folds():
    case("nn.Unfold({2, 3})", nn.Unfold((2, 3)), [(2, 3, 5, 6)])
    case("nn.Unfold(3, {stride = {2, 1}, padding = {1, 2}, dilation = {1, 2}})", nn.Unfold(3, (1, 2), (1, 2), (2, 1)), [(2, 3, 7, 6)])
    case("nn.Fold({5, 6}, {2, 3})", nn.Fold((5, 6), (2, 3)), [(2, 18, 16)])
    case("nn.Fold({7, 6}, 3, {stride = {2, 1}, padding = {1, 2}, dilation = {1, 2}})",
         nn.Fold((7, 6), 3, (1, 2), (1, 2), (2, 1)), [(2, 18, 24)])


def norms():
    x = [(3, 4, 2, 3, 5)]
    case("nn.BatchNorm3d(4)", nn.BatchNorm3d(4), x)
    case("nn.BatchNorm3d(4, {affine = false}):eval()", nn.BatchNorm3d(4, affine=False).eval(), x)
    case("nn.InstanceNorm1d(4)", nn.InstanceNorm1d(4), [(3, 4, 5)])
    case("nn.InstanceNorm3d(4, {affine = true})", nn.InstanceNorm3d(4, affine=True), x)
    case("nn.GroupNorm(2, 4)", nn.GroupNorm(2, 4), x)


def borders():
    one, two, three = [(2, 3, 5)], [(2, 3, 5, 4)], [(2, 2, 4, 5, 3)]
    case("nn.CircularPad1d({1, 2})", nn.CircularPad1d((1, 2)), one)
    case("nn.CircularPad3d({1, 2, 0, 1, 2, 1})", nn.CircularPad3d((1, 2, 0, 1, 2, 1)), three)
    case("nn.ReflectionPad3d({1, 2, 0, 1, 2, 1})", nn.ReflectionPad3d((1, 2, 0, 1, 2, 1)), three)
    case("nn.ReplicationPad3d({1, 2, 0, 1, 2, 1})", nn.ReplicationPad3d((1, 2, 0, 1, 2, 1)), three)
    case("nn.ConstantPad3d({1, 2, 0, 1, -2, 1}, 1.5)", nn.ConstantPad3d((1, 2, 0, 1, -2, 1), 1.5), three)
    case("nn.ZeroPad3d(1)", nn.ZeroPad3d(1), three)
    case("nn.ZeroPad2d({1, 2, 0, 1})", nn.ZeroPad2d((1, 2, 0, 1)), two)


def sizes():
    one, two, three = [(2, 3, 5)], [(2, 3, 5, 4)], [(2, 2, 4, 5, 3)]
    case("nn.Upsample {scale = 2}", nn.Upsample(scale_factor=2), one)
    case("nn.Upsample {size = 7}", nn.Upsample(size=7), one)
    case("nn.Upsample {scale = {2, 1, 3}}", nn.Upsample(scale_factor=(2, 1, 3)), three)
    case('nn.Upsample {size = {7, 3}, mode = "nearest-exact"}', nn.Upsample(size=(7, 3), mode="nearest-exact"), two)
    case('nn.Upsample {scale = 1.7, mode = "nearest-exact"}', nn.Upsample(scale_factor=1.7, mode="nearest-exact"), one)
    case('nn.Upsample {scale = 2.5, mode = "nearest"}', nn.Upsample(scale_factor=2.5), two)
    for corners in [False, True]:
        end = ", align_corners = true}" if corners else "}"
        more = {"align_corners": corners}
        case('nn.Upsample {scale = 1.7, mode = "linear"' + end, nn.Upsample(scale_factor=1.7, mode="linear", **more), one)
        case('nn.Upsample {size = 3, mode = "linear"' + end, nn.Upsample(size=3, mode="linear", **more), one)
        case('nn.Upsample {size = {7, 3}, mode = "bilinear"' + end, nn.Upsample(size=(7, 3), mode="bilinear", **more), two)
        case('nn.Upsample {scale = {1.5, 2}, mode = "bilinear"' + end, nn.Upsample(scale_factor=(1.5, 2), mode="bilinear", **more), two)
        case('nn.Upsample {size = {9, 3}, mode = "bicubic"' + end, nn.Upsample(size=(9, 3), mode="bicubic", **more), two)
        case('nn.Upsample {scale = {2, 1.3}, mode = "bicubic"' + end, nn.Upsample(scale_factor=(2, 1.3), mode="bicubic", **more), two)
        case('nn.Upsample {size = {2, 7, 5}, mode = "trilinear"' + end, nn.Upsample(size=(2, 7, 5), mode="trilinear", **more), three)
        case('nn.Upsample {scale = 2, mode = "trilinear"' + end, nn.Upsample(scale_factor=2, mode="trilinear", **more), three)


def make_cases():
    for group in [convolutions, pools, unpools, folds, norms, borders, sizes]:
        group()


layers.make_cases = make_cases
layers.main("volumes")
