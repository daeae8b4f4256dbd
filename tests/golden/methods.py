"""tests/golden/methods.py - writes tests/golden/methods.lua: what PyTorch computes for methods of
tensors that are put together from ops, for tests/spec/tensor/golden_methods_spec.lua.

    python tests/golden/methods.py > tests/golden/methods.lua

Inputs are made by the formula of numbers() in layers.py, on both sides: x, y [3, 4], with equal
elements and none near 0; p = positive x; v [4]; i, j integers; m is 0 in the first and last row. A case gives the output and, of
floats, the gradients of sum(output * weights) for x and y.
"""
import torch

from layers import ids, numbers, sample


def inputs():
    x, y = numbers(1, (3, 4)) * 3 + 0.1, numbers(2, (3, 4)) * 2 + 0.05
    t = {"x": x, "y": y, "p": x.abs() / 4 + 0.05, "v": numbers(4, (4,)),
         "i": ids(5, (3, 4), 9) - 4, "j": ids(6, (3, 4), 3) + 1, "r": torch.round(x),
         "m": torch.tensor([[0.0], [1.0], [0.0]])}
    for name in "xypv":
        t[name] = t[name].clone().detach().requires_grad_()
    return t


nan, inf = float("nan"), float("inf")
# (Lua, Python); "!": eager only, or without a gradient to compare
CASES = [
    ("x % 0.7", "x % 0.7"), ("x % y", "torch.remainder(x, y)"), ("x // 0.7", "x.div(0.7, rounding_mode='floor')"),
    ("2 % y", "2 % y"), ("2 // y", "torch.floor(2 / y)"), ("i % 3", "i % 3"), ("i % -3", "i % -3"), ("i // j", "i // j"),
    ("i // -2", "i // -2"), ("x:fmod(0.7)", "x.fmod(0.7)"), ("i:fmod(3)", "i.fmod(3)"), ("x:trunc()", "x.trunc()"),
    ("x:frac()", "x.frac()"), ("p:log2()", "p.log2()"), ("p:log10()", "p.log10()"), ("x:exp2()", "x.exp2()"),
    ("x:tan()", "x.tan()"), ("x:sinh()", "x.sinh()"), ("x:cosh()", "x.cosh()"), ("x:erfc()", "x.erfc()"),
    ("p:logit()", "p.logit()"), ("x:logit(0.2)", "x.logit(0.2)"), ("(x * 20):log_sigmoid()", "torch.nn.functional.logsigmoid(x * 20)"),
    ("x:lerp(y, 0.3)", "x.lerp(y, 0.3)"), ("x:addcmul(y, p, {value = 0.5})", "x.addcmul(y, p, value=0.5)"),
    ("x:addcdiv(y, p, {value = 0.5})", "x.addcdiv(y, p, value=0.5)"), ("x:hypot(y)", "x.hypot(y)"),
    ("x:logaddexp(y)", "x.logaddexp(y)"), ("x:xlogy(p)", "x.xlogy(p)"), ("(r * 0):xlogy(r * 0)", "(r * 0).xlogy(r * 0)"),
    ("x:cumprod(1)", "x.cumprod(0)"), ("x:cumprod(2)", "x.cumprod(1)"), ("(x * r):cumprod(-1)", "(x * r).cumprod(-1)"),
    ("i:cumprod(2)", "i.cumprod(1)"), ("x:logcumsumexp(2)", "x.logcumsumexp(1)"), ("x:diff()", "x.diff()"),
    ("x:diff(2, 1)", "x.diff(2, 0)"), ("x:trapezoid()", "torch.trapezoid(x)"), ("x:trapezoid(0.5, 1)", "torch.trapezoid(x, dx=0.5, dim=0)"),
    ("x:trapezoid(v)", "torch.trapezoid(x, v)"), ("x:quantile(0.3)", "x.quantile(0.3)"),
    ("x:quantile({0.1, 0.5, 1}, 2)", "x.quantile(torch.tensor([0.1, 0.5, 1]), 1)"),
    ('x:quantile(0.4, 1, {interpolation = "midpoint", keep = true})', "x.quantile(0.4, 0, True, interpolation='midpoint')"),
    ('x:quantile(0.4, 2, {interpolation = "nearest"})', "x.quantile(0.4, 1, interpolation='nearest')"),
    ("x:amax(2)", "x.amax(1)"), ("x:amin({1, 2})", "x.amin((0, 1))"), ("x:dist(y)", "x.dist(y)"), ("x:dist(y, 1)", "x.dist(y, 1)"),
    ("x:nansum()", "x.nansum()"), ("x:unflatten(2, {2, -1})", "x.unflatten(1, (2, -1))"), ("x:movedim(1, 2)", "x.movedim(0, 1)"),
    ("x:diagonal(1)", "x.diagonal(1)"), ("x:diagonal(-1)", "x.diagonal(-1)"), ("x:diag_embed()", "x.diag_embed()"),
    ("x:diag_embed(-1)", "x.diag_embed(-1)"), ("x:cross(y, 1)", "x.cross(y, 0)"), ("x:kron(v)", "x.kron(v)"), ("v:kron(x)", "v.kron(x)"),
    ("gp.cdist(x, y)", "torch.cdist(x, y)"), ("gp.cdist(x, y, 1)", "torch.cdist(x, y, 1)"), ("gp.block_diag(x, y)", "torch.block_diag(x, y)"),
    ("x:scatter(1, j:narrow(1, 1, 1), y)", "x.scatter(0, j[:1] - 1, y)"), ("x:scatter(2, j, 2.5)", "x.scatter(1, j - 1, 2.5)"),
    ("x:index_add(2, {2, 1, 2, 3}, y)", "x.index_add(1, torch.tensor([1, 0, 1, 2]), y)"),
    ("x:index_fill(1, {1, 3}, 7)", "x.index_fill(0, torch.tensor([0, 2]), 7)"), ("!x:take(j)", "x.take(j - 1)"),
    ("x:take_along_dim(j:narrow(1, 1, 1), 1)", "x.take_along_dim(j[:1] - 1, 0)"),
    ("(select(1, x:cummax(2)))", "x.cummax(1)[0]"), ("(select(1, x:cummin(1)))", "x.cummin(0)[0]"),
    ("select(2, r:cummax(2)) - 1", "r.cummax(1)[1]"), ("select(2, r:cummin(2)) - 1", "r.cummin(1)[1]"),
    ("(select(1, x:kthvalue(2)))", "x.kthvalue(2)[0]"), ("select(2, x:kthvalue(2, 1)) - 1", "x.kthvalue(2, 0)[1]"),
    ("!r:histc(5)", "r.histc(5)"), ("!x:histc(4, -1, 2)", "x.detach().histc(4, -1, 2)"),
    ("gp.searchsorted(v:sort(), x) - 1", "torch.searchsorted(v.sort()[0], x)"),
    ("gp.searchsorted(r:reshape(12):sort(), r, {right = true}) - 1", "torch.searchsorted(r.reshape(12).sort()[0], r, right=True)"),
    ("x:isclose(x + 1e-7)", "x.isclose(x + 1e-7)"), ("gp.logspace(-1, 2, 4)", "torch.logspace(-1, 2, 4)"),
    ("gp.logspace(0, 3, 4, {base = 2})", "torch.logspace(0, 3, 4, 2)"),
    # lengths of 0 pass no gradient on
    ("(x * m):norm(2, 2)", "(x * m).norm(2, 1)"), ("(x * m):norm(1, 2)", "(x * m).norm(1, 1)"),
    ("(x * m):norm(0.5, 2)", "(x * m).norm(0.5, 1)"), ("(x * m):norm(3, 2)", "(x * m).norm(3, 1)"),
    ("(x * m):norm(math.huge, 2)", "(x * m).norm(inf, 1)"), ("gp.linalg.norm(x * m, 2, 2)", "torch.linalg.norm(x * m, 2, 1)"),
    ("gp.linalg.norm(x * m, 1, 2)", "torch.linalg.norm(x * m, 1, 1)"), ("(x * m + 2):std(2)", "(x * m + 2).std(1)"),
    ("gp.cdist(x, x)", "torch.cdist(x, x)"), ("x:dist(x * 1)", "x.dist(x * 1)"),
    ("gp.nn.CosineSimilarity()(x * m, y + 5)", "torch.nn.CosineSimilarity()(x * m, y + 5)"),
    # large quotients, infinities
    ("(x * 1e10) % 3", "(x * 1e10) % 3"), ("(x * 1e16) % 10", "(x * 1e16) % 10"), ("p % inf", "p % inf"), ("(x * 1e10) % y", "(x * 1e10) % y"),
    ("(x * 1e10):fmod(y)", "(x * 1e10).fmod(y)"), ("(x * 1e6) // y", "(x * 1e6).div(y, rounding_mode='floor')"), ("x // inf", "x.div(inf, rounding_mode='floor')"),
    ("i * 1000000007000 % 13", "i * 1000000007000 % 13"), ("i * 1000000007000 // j", "i * 1000000007000 // j"),
    ("x:sign() * x", "x.sign() * x"), ("x:floor() + x:ceil() + x:round()", "x.floor() + x.ceil() + x.round()"),
    ("x:tile{2, 1, 3}", "x.tile(2, 1, 3)"), ("x:tile{1, 2}", "x.tile(1, 2)"),
]


def main():
    print("-- tests/golden/methods.lua - written by methods.py with PyTorch %s." % torch.__version__)
    print("-- luacheck: no max line length\n\nreturn {")
    for lua, python in CASES:
        t = inputs()
        y = eval(python, {"torch": torch, "inf": inf, **t})
        eager = lua.startswith("!")
        print(f"  {{ [[{lua.lstrip('!')}]], eager = {str(eager).lower()}, output = {sample(y.double())},")
        if y.requires_grad and not eager:
            try:
                (y * numbers(50, tuple(y.shape))).sum().backward()
            except RuntimeError:  # it has no gradient there
                t = {}
            for name in "xyp":
                if name in t and t[name].grad is not None:
                    print(f"    {name} = {sample(t[name].grad)},")
        print("  },")
    print("}")


main()
