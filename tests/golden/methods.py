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
    # lengths of 0, which pass no gradient on
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
    ("x:mm(y:t())", "x.mm(y.t())"), ("(x:mm(y:t())):addmm(x, y:t(), {alpha = 2, beta = 0.5})", "x.mm(y.t()).addmm(x, y.t(), alpha=2, beta=0.5)"),
    ("x:reshape(3, 2, 2):bmm(y:reshape(3, 2, 2))", "x.reshape(3, 2, 2).bmm(y.reshape(3, 2, 2))"),
    ("x:reshape(3, 2, 2):baddbmm(y:reshape(3, 2, 2), p:reshape(3, 2, 2))", "x.reshape(3, 2, 2).baddbmm(y.reshape(3, 2, 2), p.reshape(3, 2, 2))"),
    ("v:reshape(2, 2):addbmm(x:reshape(3, 2, 2), y:reshape(3, 2, 2), {beta = 0.3})", "v.reshape(2, 2).addbmm(x.reshape(3, 2, 2), y.reshape(3, 2, 2), beta=0.3)"),
    ("x:sum(2):addmv(x, v, {alpha = -1})", "x.sum(1).addmv(x, v, alpha=-1)"), ("x:addr(y:sum(2), v)", "x.addr(y.sum(1), v)"),
    ("x:tensordot(y, {{1, 2}, {1, 2}})", "torch.tensordot(x, y, ([0, 1], [0, 1]))"), ("x:tensordot(y, {{1}, {1}})", "torch.tensordot(x, y, ([0], [0]))"),
    ("x:tensordot(y:t(), 1)", "torch.tensordot(x, y.t(), 1)"), ("v:tensordot(v, 0)", "torch.tensordot(v, v, 0)"), ("x:inner(y)", "x.inner(y)"), ("x:inner(v)", "x.inner(v)"),
    ("(x * 3):erfc()", "(x * 3).erfc()"), ("(p * 3):lgamma()", "(p * 3).lgamma()"), ("x:lgamma()", "x.lgamma()"), ("(p * 20):lgamma()", "(p * 20).lgamma()"),
    ("(x / 4):erfinv()", "(x / 4).erfinv()"), ("x:clamp_min(0.3)", "x.clamp_min(0.3)"), ("x:clamp_max(y)", "x.clamp_max(y)"),
    ("x:fmax(y)", "x.fmax(y)"), ("x:fmin(y)", "x.fmin(y)"), ("x:copysign(y:detach())", "x.copysign(y.detach())"), ("x:copysign(-1)", "x.copysign(-1)"),
    ("!r:heaviside(y)", "r.heaviside(y).detach()"), ("x:sinc()", "x.sinc()"), ("(r * x):sinc()", "(r * x).sinc()"), ("x:logaddexp2(y)", "x.logaddexp2(y)"),
    ("x:deg2rad()", "x.deg2rad()"), ("x:rad2deg()", "x.rad2deg()"), ("p:float_power(1.5):to('f32')", "p.float_power(1.5).float()"), ("r:signbit()", "r.signbit()"),
    ("x:rot90()", "x.rot90()"), ("x:rot90(3)", "x.rot90(3)"), ("x:rot90(-2, {2, 1})", "x.rot90(-2, (1, 0))"), ("x:flipud()", "x.flipud()"), ("x:fliplr()", "x.fliplr()"),
    ("x:tensor_split(3, 2)[1]", "x.tensor_split(3, 1)[0]"), ("x:tensor_split({1, 3}, 2)[2]", "x.tensor_split((1, 3), 1)[1]"), ("x:tensor_split(3, 2)[3]", "x.tensor_split(3, 1)[2]"),
    ("(select(2, x:aminmax(2)))", "x.aminmax(dim=1)[1]"), ("(select(1, x:std_mean(2)))", "torch.std_mean(x, 1)[0]"), ("(select(2, x:var_mean(1)))", "torch.var_mean(x, 0)[1]"),
    ("x:select_scatter(v, 1, 2)", "x.select_scatter(v, 0, 1)"), ("x:slice_scatter(y:narrow(2, 1, 2), 2, 3)", "x.slice_scatter(y[:, :2], 1, 2)"),
    ("x:index_copy(2, {3, 1}, y:narrow(2, 1, 2))", "x.index_copy(1, torch.tensor([2, 0]), y[:, :2])"),
    ("x:masked_scatter(y:gt(0), y)", "x.masked_scatter(y > 0, y)"), ("i:masked_scatter(y:gt(0), j)", "i.masked_scatter(y > 0, j)"),
    ('x:scatter_reduce(1, j, y, "sum")', "x.scatter_reduce(0, j - 1, y, 'sum')"), ('x:scatter_reduce(2, j, y, "mean", {include_self = false})', "x.scatter_reduce(1, j - 1, y, 'mean', include_self=False)"),
    ('x:scatter_reduce(2, j, y, "amax")', "x.scatter_reduce(1, j - 1, y, 'amax')"), ('x:scatter_reduce(1, j, y, "amin", {include_self = false})', "x.scatter_reduce(0, j - 1, y, 'amin', include_self=False)"),
    ("!r:mode(2)", "r.mode(1)[0].detach()"), ("!(select(2, i:mode(1)))", "i.mode(0)[1] + 1"), ("(select(2, (i % 2):mode(2)))", "(i % 2).mode(1)[1] + 1"), ("i:isin(j)", "torch.isin(i, j)"), ("x:bucketize((v:sort(1)))", "torch.bucketize(x, v.sort()[0]) + 1"),
    ("x:bucketize(v:sort(1), {right = true})", "torch.bucketize(x, v.sort()[0], right=True) + 1"), ("!j:reshape(-1):unique_consecutive()", "j.reshape(-1).unique_consecutive()"),
    ("!(select(2, j:reshape(-1):unique_consecutive()))", "j.reshape(-1).unique_consecutive(return_counts=True)[1]"),
    ("gp.where(m:gt(0), x, 0 / 0):nanquantile(0.3, 1)", "x.where(m > 0, torch.nan).nanquantile(0.3, 0)"), ("gp.where(x:gt(1), 0 / 0, x):nanmedian(2)", "torch.where(x > 1, torch.nan, x).nanmedian(1)[0]"),
    ("x:cov()", "x.cov()"), ("x:cov({correction = 0})", "x.cov(correction=0)"), ("x:corrcoef()", "x.corrcoef()"), ("v:cov()", "v.cov()"),
    ("x:cumulative_trapezoid()", "torch.cumulative_trapezoid(x)"), ("x:cumulative_trapezoid(v, 2)", "torch.cumulative_trapezoid(x, v.detach(), dim=1)"), ("x:renorm(2, 1, 1.5)", "x.renorm(2, 0, 1.5)"),
    ("x:index_put({{1, 3}, {2, 4}}, v:narrow(1, 1, 2))", "x.index_put((torch.tensor([0, 2]), torch.tensor([1, 3])), v[:2])"),
    ("x:index_put({{3, 1, 3}}, y, true)", "x.index_put((torch.tensor([2, 0, 2]),), y, accumulate=True)"), ("x:diagonal_scatter(v:narrow(1, 1, 3), 1)", "x.diagonal_scatter(v[:3], 1)"),
    ("x:diagflat(1):sum(1)", "x.diagflat(1).sum(0)"), ("x:hsplit(2)[2]", "x.hsplit(2)[1]"),
    ("i:bitwise_and(j) + i:bitwise_or(j) * 2 + i:bitwise_xor(7) * 3", "(i & j) + (i | j) * 2 + (i ^ 7) * 3"), ("i:bitwise_not():bitwise_left_shift(j):bitwise_right_shift(1)", "((~i) << j) >> 1"),
    ("gp.hstack {x, y}", "torch.hstack((x, y))"), ("gp.hstack {v, v * 2}", "torch.hstack((v, v * 2))"), ("gp.vstack {x, v}", "torch.vstack((x, v))"), ("gp.dstack {x, y}", "torch.dstack((x, y))"), ("gp.dstack {v, v}", "torch.dstack((v, v))"),
    ("gp.column_stack {v, y:t()}", "torch.column_stack((v, y.t()))"), ("gp.atleast_2d(v)", "torch.atleast_2d(v)"), ("gp.atleast_3d(v)", "torch.atleast_3d(v)"), ("gp.atleast_3d(x)", "torch.atleast_3d(x)"),
    ("gp.cartesian_prod(v, y[1])", "torch.cartesian_prod(v, y[0])"), ("gp.cartesian_prod(v, v, v * 2)", "torch.cartesian_prod(v, v, v * 2)"), ("gp.combinations(v, 3)", "torch.combinations(v, 3)"), ("gp.combinations(v, 2, true)", "torch.combinations(v, 2, True)"),
    ("(select(1, gp.broadcast_tensors(x:sum(2, true), v)))", "torch.broadcast_tensors(x.sum(1, keepdim=True), v)[0]"), ("!gp.tril_indices(3, 4, 1)", "torch.tril_indices(3, 4, 1) + 1"), ("!gp.triu_indices(4, 3, -1)", "torch.triu_indices(4, 3, -1) + 1"),
    # what PyTorch's inventory of operations showed (inventory.py)
    ("gp.nn.CosineSimilarity(2)(x, y:narrow(1, 1, 1))", "torch.nn.CosineSimilarity(1)(x, y[:1])"), ("x:clamp(y, p)", "x.clamp(y, p)"), ("x:clamp({max = v})", "x.clamp(max=v)"),
    ("gp.block_diag(v, x)", "torch.block_diag(v, x)"), ("x:unsqueeze(2):expand({-1, 2, -1})", "x.unsqueeze(1).expand(-1, 2, -1)"), ("x:masked_fill(y:gt(0), v:sum())", "x.masked_fill(y > 0, v.sum())"),
    ("x:index_fill(2, {1, 3}, v:sum())", "x.index_fill(1, torch.tensor([0, 2]), v.sum())"), ("!v:masked_select(x:gt(0))", "v.masked_select(x > 0)"), ("v:masked_scatter(x:gt(0), y)", "v.masked_scatter(x > 0, y)"),
    ("(select(2, gp.where(x:gt(1), 0 / 0, x):nanmedian(2)))", "torch.where(x > 1, torch.nan, x).nanmedian(1)[1] + 1"), ("(select(2, gp.meshgrid(v, x:sum())))", "torch.meshgrid(v, x.sum(), indexing='ij')[1]"),
    ("(x * 100):round(-1) + (x * 3):round(1)", "(x * 100).round(decimals=-1) + (x * 3).round(decimals=1)"), ("gp.einsum('iji->j', x:reshape(2, 3, 2))", "torch.einsum('iji->j', x.reshape(2, 3, 2))"),
    ("gp.einsum('...k,kj->...j', x:reshape(3, 2, 2), y:reshape(2, 6))", "torch.einsum('...k,kj->...j', x.reshape(3, 2, 2), y.reshape(2, 6))"), ("gp.einsum('i...,...i', x, y:t())", "torch.einsum('i...,...i', x, y.t())"),
    ("gp.einsum('ba,cb', x, y:t())", "torch.einsum('ba,cb', x, y.t())"), ("x:reshape(3, 2, 2):movedim({1, 3}, {3, 2})", "x.reshape(3, 2, 2).movedim((0, 2), (2, 1))"), ("x:tile{0, 2}:sum(1)", "x.tile(0, 2).sum(0)"),
    ("x:norm(0, 2)", "x.norm(0, 1)"), ("p:norm(-1.5, 2)", "p.norm(-1.5, 1)"), ("x:norm(-math.huge, 1)", "x.norm(-inf, 0)"), ("x:narrow(1, 1, 1):cov()", "x[:1].cov()"), ("v:t()", "v.t()"),
    ('x:scatter_reduce(2, j:narrow(1, 1, 2), y, "amax")', "x.scatter_reduce(1, j[:2] - 1, y, 'amax')"), ("x:narrow(1, 1, 0):flip(1)", "x[:0].flip(0)"),
    ("gp.nn.PoissonNLLLoss{full = true}(x, p * 9)", "torch.nn.PoissonNLLLoss(full=True)(x, p * 9)"),
    ("x:min(1) + i:min(1):to('f32')", "x.min(0)[0] + i.min(0)[0]"),
    ("x:tile{2, 1, 3}", "x.tile(2, 1, 3)"), ("x:tile{1, 2}", "x.tile(1, 2)"),
]


def main():
    print("-- tests/golden/methods.lua - written by methods.py with PyTorch %s." % torch.__version__)
    print("-- luacheck: no max line length\n\nreturn {")
    for lua, python in CASES:
        t = inputs()
        y = eval(python, {"torch": torch, "inf": inf, **t})
        eager = lua.startswith("!")
        print(f"  {{ [=[{lua.lstrip('!')}]=], eager = {str(eager).lower()}, output = {sample(y.double())},")
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
