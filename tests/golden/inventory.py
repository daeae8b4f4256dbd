"""tests/golden/inventory.py - PyTorch's own inventory of operations (op_db of its wheel: thousands of
inputs, wrong ones too) against ours.

    python tests/golden/inventory.py build/gpipe-lua [name ...]

Maps each name to a call in Lua (CALLS below), runs both sides in f64 and compares values and
gradients within 1e-9; inputs that PyTorch refuses must be refused. At the end it lists the names that
have no counterpart, the most used first as far as the lists of "elsewhere" know none. The exit code
is 1 where something differs. No test runs it: it needs PyTorch (and expecttest).
"""
import collections
import glob
import json
import math
import os
import re
import struct
import subprocess
import sys
import tempfile
import warnings

warnings.filterwarnings("ignore")
import torch  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

TOLERANCE, MOST = 1e-9, 40  # MOST: samples of one operation
BIG = 200_000  # elements: larger samples test the GPU's grids

# ---- Lua ---------------------------------------------------------------------------------------


class No(Exception):
    """A form of the call that has no counterpart, with the reason."""


def lua(value):
    """A Lua literal."""
    if isinstance(value, Ref):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "nil"
    if isinstance(value, (int, float)):
        if math.isinf(value):
            return "math.huge" if value > 0 else "-math.huge"
        return "(0 / 0)" if math.isnan(value) else "(%r)" % value if value < 0 else repr(value)
    if isinstance(value, str):
        return '"%s"' % value
    if isinstance(value, (tuple, list)):
        return "{" + ", ".join(lua(v) for v in value) + "}"
    if isinstance(value, dict):
        return "{" + ", ".join("%s = %s" % (k, lua(v)) for k, v in value.items() if v is not None) + "}"
    raise No("an argument that is a %s" % type(value).__name__)


class Ref:
    """A tensor of the sample: a[i] in Lua."""

    def __init__(self, number, tensor):
        self.number, self.tensor = number, tensor

    def __str__(self):
        return "a[%d]" % self.number


def dim(d):
    if isinstance(d, (tuple, list)):
        return [dim(e) for e in d]
    return d if d is None or d < 0 else d + 1


def bind(names, args, kwargs):
    """The arguments by name; those that are left out are None."""
    given = dict(zip(names, args))
    given.update(kwargs)
    return [given.get(name) for name in names]


def call(name, *args):
    args = list(args)
    while args and args[-1] is None:
        args.pop()
    return "%s(%s)" % (name, ", ".join(lua(a) for a in args))


def method(x, name, *args):
    return call("%s:%s" % (x, name), *args)


# ---- kinds of calls ----------------------------------------------------------------------------


def unary(name):
    return lambda x, args, kw: method(x, name)


def binary(name):
    def make(x, args, kw):
        if kw or len(args) != 1:
            raise No("options %s" % kw)
        if not isinstance(x, Ref):
            raise No("a number on the left")
        return method(x, name, args[0])
    return make


def reduction(name, keep=True):
    def make(x, args, kw):
        d, keepdim, dtype = bind(("dim", "keepdim", "dtype"), args, kw)
        if dtype is not None:
            raise No("dtype")
        if d == () or d == []:
            d = None
        if isinstance(d, (tuple, list)) and len(d) == 1:
            d = d[0]
        if d is None and keepdim:
            raise No("keepdim of all")
        return method(x, name, dim(d), keepdim or None)
    return make


def along(name, *more):
    """x, dim, then what else."""
    def make(x, args, kw):
        got = bind(("dim",) + more, args, kw)
        return method(x, name, dim(got[0]), *got[1:])
    return make


def spread(name):
    def make(x, args, kw):
        if args and isinstance(args[0], bool):
            kw, args = dict(kw, unbiased=args[0]), args[1:]
        d, keepdim, unbiased, correction = bind(("dim", "keepdim", "unbiased", "correction"), (), kw)
        if args:
            d = args[0]
        if unbiased is not None:
            correction = 1 if unbiased else 0
        if d is None and keepdim:
            raise No("keepdim of all")
        return method(x, name, dim(d), {"correction": correction, "keep": keepdim})
    return make


def layer(name, options=(), inputs=1):
    """A module of ours called on the sample: nn.Name {options}(x, ...)."""
    def make(x, args, kw):
        tensors, rest = [], list(args)
        while rest and (isinstance(rest[0], Ref)) and len(tensors) < inputs - 1:
            tensors.append(rest.pop(0))
        kw = {k: v for k, v in kw.items() if k not in ("inplace",)}
        if rest:
            raise No("positions %s" % (rest,))
        unknown = [k for k in kw if k not in options]
        if unknown:
            raise No("options %s" % unknown)
        return "nn.%s%s(%s)" % (name, lua(kw) if kw else "()", ", ".join(map(str, [x] + tensors)))
    return make


def loss(name, *options):
    return layer(name, options + ("reduction",), 2)


def listed(name):
    return lambda x, args, kw: call(name, x, *[dim(a) for a in args], *[dim(v) for v in kw.values()])


CALLS = {}
for word in """abs acos acosh asin asinh atan atanh ceil clone cos cosh deg2rad erf erfc erfinv exp exp2 expm1
    floor frac isfinite isinf isnan isneginf isposinf lgamma log log10 log1p log2 logical_not neg
    rad2deg reciprocal rsqrt sigmoid sign sin sinc sinh sqrt square tan tanh t trace trunc
    contiguous ravel fliplr flipud signbit nan_to_num argwhere relu corrcoef dot mv""".split():
    CALLS[word] = unary(word)
for word in """add sub mul div pow maximum minimum fmax fmin eq ne lt le gt ge atan2 fmod remainder floor_divide
    logical_and logical_or logical_xor logaddexp logaddexp2 hypot copysign heaviside xlogy mm bmm matmul
    mv dot outer inner vdot kron float_power take isclose dist bitwise_and reshape_as view_as
    expand_as""".split():
    CALLS[word] = binary(word)
for word in "sum mean prod amax amin logsumexp any all count_nonzero nansum nanmean".split():
    CALLS[word] = reduction(word)
for word in "var std var_mean std_mean".split():
    CALLS[word] = spread(word)
for word in "cumsum cumprod logcumsumexp cummax cummin".split():
    CALLS[word] = along(word)
for ours, theirs in {"ReLU": "relu", "ReLU6": "relu6", "SiLU": "silu", "Mish": "mish", "Softsign": "softsign",
                     "Hardsigmoid": "hardsigmoid", "Hardswish": "hardswish", "LogSigmoid": "logsigmoid",
                     "Tanhshrink": "tanhshrink", "SELU": "selu"}.items():
    CALLS["nn.functional." + theirs] = layer(ours)
CALLS["nn.functional.elu"] = layer("ELU", ("alpha",))
CALLS["nn.functional.celu"] = layer("CELU", ("alpha",))


def some(name):
    def add(f):
        CALLS[name] = f
        return f
    return add


def full(x, args, kw):
    d, keepdim = bind(("dim", "keepdim"), args, kw)
    return d, keepdim


for word in "argmax argmin".split():
    @some(word)
    def _(x, args, kw, word=word):
        d, keepdim = full(x, args, kw)
        return method(x, word, dim(d), keepdim or None)
for word in "max min median nanmedian".split():
    @some(word)
    def _(x, args, kw, word=word):
        if args and isinstance(args[0], Ref) or "other" in kw:
            return method(x, word + "imum", args[0] if args else kw["other"])
        d, keepdim = full(x, args, kw)
        return method(x, word, dim(d), keepdim or None)
some("mode")(lambda x, a, k: method(x, "mode", dim(full(x, a, k)[0]), full(x, a, k)[1]))
some("sort")(lambda x, a, k: (lambda d, r, s: method(x, "sort", dim(d) or -1, {"descending": r, "stable": s}))(
    *bind(("dim", "descending", "stable"), a, k)))
some("argsort")(lambda x, a, k: (lambda d, r, s: method(x, "argsort", dim(d) or -1, {"descending": r}))(
    *bind(("dim", "descending", "stable"), a, k)))
some("topk")(lambda x, a, k: (lambda n, d, big, s: method(x, "topk", n, dim(d) or -1, {"largest": big}))(
    *bind(("k", "dim", "largest", "sorted"), a, k)))
some("kthvalue")(lambda x, a, k: (lambda n, d, keep: method(x, "kthvalue", n, dim(d), keep or None))(
    *bind(("k", "dim", "keepdim"), a, k)))
some("gather")(lambda x, a, k: method(x, "gather", dim(a[0]), Raw("(%s + 1)" % a[1])))
some("index_select")(lambda x, a, k: method(x, "index_select", dim(a[0]), Raw("(%s + 1)" % a[1])))
some("scatter_add")(lambda x, a, k: method(x, "scatter_add", dim(a[0]), Raw("(%s + 1)" % a[1]), a[2]))
some("index_add")(lambda x, a, k: no_options(k) or method(x, "index_add", dim(a[0]), Raw("(%s + 1)" % a[1]), a[2]))
some("index_fill")(lambda x, a, k: method(x, "index_fill", dim(a[0]), Raw("(%s + 1)" % a[1]), a[2]))
some("index_copy")(lambda x, a, k: method(x, "index_copy", dim(a[0]), Raw("(%s + 1)" % a[1]), a[2]))
some("take_along_dim")(lambda x, a, k: (lambda d: method(x, "take_along_dim", Raw("((%s + %s:size(%d)) %% %s:size(%d) + 1)" % (
    a[0], x, dim(d), x, dim(d))), dim(d)))(a[1] if len(a) > 1 else k["dim"]))
some("take")(lambda x, a, k: method(x, "take", Raw("(gp.where(%s:lt(0), %s + %s:numel(), %s) + 1)" % (a[0], a[0], x, a[0]))))
some("masked_fill")(lambda x, a, k: method(x, "masked_fill", a[0], a[1]))
some("masked_select")(lambda x, a, k: method(x, "masked_select", a[0]))
some("masked_scatter")(lambda x, a, k: method(x, "masked_scatter", *a))
some("where")(lambda x, a, k: call("gp.where", a[0], x, a[1]))
some("clamp")(lambda x, a, k: (lambda lo, hi: method(x, "clamp", {"min": lo, "max": hi}))(*bind(("min", "max"), a, k)))
some("clamp_min")(lambda x, a, k: method(x, "clamp_min", *a))
some("clamp_max")(lambda x, a, k: method(x, "clamp_max", *a))
some("lerp")(lambda x, a, k: method(x, "lerp", *a))
some("addcmul")(lambda x, a, k: method(x, "addcmul", a[0], a[1], dict(k)))
some("addcdiv")(lambda x, a, k: method(x, "addcdiv", a[0], a[1], dict(k)))
for word in "addmm addbmm baddbmm addmv addr".split():
    @some(word)
    def _(x, args, kw, word=word):
        return method(x, word, args[0], args[1], dict(kw))
some("reshape")(lambda x, a, k: method(x, "reshape", list(a[0])))
some("view")(lambda x, a, k: method(x, "view", list(a[0])))
some("expand")(lambda x, a, k: method(x, "expand", list(a[0])))
some("permute")(lambda x, a, k: method(x, "permute", dim(list(a[0]))))
some("transpose")(lambda x, a, k: method(x, "transpose", *map(dim, a)))
some("unsqueeze")(lambda x, a, k: method(x, "unsqueeze", dim(a[0])))
some("squeeze")(lambda x, a, k: method(x, "squeeze", *map(dim, a)))
some("flatten")(lambda x, a, k: (lambda s, e: method(x, "flatten", dim(s), dim(e)))(*bind(("start_dim", "end_dim"), a, k)))
some("unflatten")(lambda x, a, k: method(x, "unflatten", dim(a[0]), list(a[1])))
some("movedim")(lambda x, a, k: method(x, "movedim", *map(dim, a)))
some("flip")(lambda x, a, k: method(x, "flip", dim(list(a[0] if a else k["dims"]))))
some("roll")(lambda x, a, k: (lambda s, d: method(x, "roll", list(s) if isinstance(s, tuple) else s,
                                                  dim(list(d) if isinstance(d, tuple) else d)))(*bind(("shifts", "dims"), a, k)))
some("rot90")(lambda x, a, k: (lambda n, d: method(x, "rot90", n, dim(d)))(*bind(("k", "dims"), a, k)))
some("tile")(lambda x, a, k: method(x, "tile", list(a[0])))
some("repeat")(lambda x, a, k: method(x, "tile", list(a[0])))
some("narrow")(lambda x, a, k: method(x, "narrow", dim(a[0]), a[1] + 1 if a[1] >= 0 else a[1], a[2]))
some("select")(lambda x, a, k: method(x, "select", dim(a[0]), a[1] + 1 if a[1] >= 0 else a[1]))
some("chunk")(lambda x, a, k: (lambda n, d: method(x, "chunk", n, dim(d) or 1))(*bind(("chunks", "dim"), a, k)))
some("split")(lambda x, a, k: (lambda n, d: method(x, "split", n, dim(d) or 1))(*bind(("n", "dim"), a, k)))
some("tensor_split")(lambda x, a, k: splits(x, *bind(("n", "dim"), a, k)))
some("unbind")(lambda x, a, k: method(x, "unbind", dim((bind(("dim",), a, k))[0]) or 1))
some("tril")(lambda x, a, k: method(x, "tril", *a))
some("triu")(lambda x, a, k: method(x, "triu", *a))
some("diag")(lambda x, a, k: method(x, "diag", *a))
some("diagonal")(lambda x, a, k: plain_diagonal(x, a, k))
some("diff")(lambda x, a, k: (lambda n, d, p, q: more(p, q) or method(x, "diff", n, dim(d)))(
    *bind(("n", "dim", "prepend", "append"), a, k)))
some("norm")(lambda x, a, k: (lambda p, d, keep: refuse(isinstance(p, str), "a norm by name") or
                              refuse(d is None and keep, "keepdim of all") or method(x, "norm", p, dim(d), keep or None))(
    *bind(("p", "dim", "keepdim"), a, k)))
some("linalg.vector_norm")(lambda x, a, k: (lambda p, d, keep: refuse(d is None and keep, "keepdim of all") or
                                            method(x, "norm", p, dim(d) or None, keep or None))(*bind(("ord", "dim", "keepdim"), a, k)))
some("cross")(lambda x, a, k: (lambda o, d: method(x, "cross", o, dim(d)))(*bind(("other", "dim"), a, k)))
some("tensordot")(lambda x, a, k: (lambda o, d: method(x, "tensordot", o, [dim(list(e)) for e in d]
                                                       if isinstance(d, (tuple, list)) else d))(*bind(("other", "dims"), a, k)))
some("softmax")(lambda x, a, k: of_dtype(k) or method(x, "softmax", dim(a[0] if a else k["dim"])))
some("log_softmax")(lambda x, a, k: of_dtype(k) or method(x, "log_softmax", dim(a[0] if a else k["dim"])))
some("quantile")(lambda x, a, k: quantile(x, "quantile", a, k))
some("renorm")(lambda x, a, k: method(x, "renorm", a[0], dim(a[1]), a[2]))
some("cdist")(lambda x, a, k: call("gp.cdist", x, a[0], a[1] if len(a) > 1 else 2))
some("trapezoid")(lambda x, a, k: area(x, "trapezoid", a, k))
some("cumulative_trapezoid")(lambda x, a, k: area(x, "cumulative_trapezoid", a, k))
some("histc")(lambda x, a, k: (lambda n, lo, hi: method(x, "histc", n, *((lo, hi) if lo or hi else ())))(
    *bind(("bins", "min", "max"), a, k)))
some("searchsorted")(lambda x, a, k: refuse(True, "its own spec"))
some("bucketize")(lambda x, a, k: Raw("%s + 0" % method(x, "bucketize", a[0], {"right": k.get("right")}) + " - 1"))
some("isin")(lambda x, a, k: no_options(k) or method(x, "isin", a[0]))
some("diagflat")(lambda x, a, k: method(x, "diagflat", *(a or [k.get("offset")])))
some("diag_embed")(lambda x, a, k: refuse(len(a) > 1 or k, "dims of its own") or method(x, "diag_embed", *a))
some("select_scatter")(lambda x, a, k: method(x, "select_scatter", a[0], dim(a[1]), a[2] + 1 if a[2] >= 0 else a[2]))
some("cov")(lambda x, a, k: refuse("fweights" in k or "aweights" in k, "weights") or method(x, "cov", dict(k)))
some("round")(lambda x, a, k: method(x, "round", k.get("decimals")))
some("logit")(lambda x, a, k: method(x, "logit", *(a or [k.get("eps")])))
for word in "zeros_like ones_like".split():
    some(word)(lambda x, a, k, word=word: no_options(k) or call("gp." + word, x))
some("nonzero")(lambda x, a, k: refuse(k.get("as_tuple"), "as_tuple") or method(x, "nonzero"))
some("polar")(lambda x, a, k: refuse(True, "complex"))
for word in "atleast_1d atleast_2d atleast_3d".split():
    some(word)(lambda x, a, k, word=word: refuse(isinstance(x, list) or a, "several") or call("gp." + word, x))
for word in "hstack vstack dstack column_stack".split():
    some(word)(lambda x, a, k, word=word: call("gp." + word, x))
some("cat")(lambda x, a, k: call("gp.concat", x, dim((bind(("dim",), a, k))[0]) or 1))
some("stack")(lambda x, a, k: call("gp.stack", x, dim((bind(("dim",), a, k))[0]) or 1))
some("block_diag")(lambda x, a, k: call("gp.block_diag", x, *a))
some("cartesian_prod")(lambda x, a, k: call("gp.cartesian_prod", x, *a))
some("combinations")(lambda x, a, k: (lambda r, w: call("gp.combinations", x, r, w))(*bind(("r", "with_replacement"), a, k)))
some("broadcast_tensors")(lambda x, a, k: call("gp.broadcast_tensors", x, *a))
some("meshgrid")(lambda x, a, k: call("gp.meshgrid", *(x if isinstance(x, list) else [x]), *a, dict(k)))
some("einsum")(lambda x, a, k: call("gp.einsum", a[0], *x))

some("linalg.det")(lambda x, a, k: call("gp.linalg.det", x))
some("linalg.slogdet")(lambda x, a, k: call("gp.linalg.slogdet", x))
some("linalg.inv")(lambda x, a, k: call("gp.linalg.inv", x))
some("linalg.cholesky")(lambda x, a, k: call("gp.linalg.cholesky", x, dict(k)))
some("linalg.solve")(lambda x, a, k: no_options(k) or call("gp.linalg.solve", x, *a))
some("linalg.matrix_power")(lambda x, a, k: call("gp.linalg.matrix_power", x, *a))
some("linalg.pinv")(lambda x, a, k: refuse(a or k, "options") or call("gp.linalg.pinv", x))

F = "nn.functional."
some(F + "gelu")(lambda x, a, k: method(x, "gelu", {"none": None}.get(k.get("approximate"), k.get("approximate"))))
some(F + "softplus")(lambda x, a, k: method(x, "softplus", dict(k)))
some(F + "leaky_relu")(lambda x, a, k: call("nn.LeakyReLU(%s)" % lua(k.get("negative_slope", 0.01)), x))
some(F + "hardtanh")(lambda x, a, k: call("nn.Hardtanh(%s)" % ", ".join(map(lua, (k.get("min_val", -1.0), k.get("max_val", 1.0)))), x))
some(F + "hardshrink")(lambda x, a, k: call("nn.Hardshrink(%s)" % lua(k.get("lambd", 0.5)), x))
some(F + "softshrink")(lambda x, a, k: call("nn.Softshrink(%s)" % lua(k.get("lambd", 0.5)), x))
some(F + "threshold")(lambda x, a, k: call("nn.Threshold(%s, %s)" % tuple(map(lua, bind(("threshold", "value"), a, k))), x))
some(F + "softmin")(lambda x, a, k: of_dtype(k) or call("nn.Softmin(%s)" % lua(dim(k["dim"])), x))
some(F + "glu")(lambda x, a, k: call("nn.GLU(%s)" % lua(dim((bind(("dim",), a, k))[0]) or -1), x))
some(F + "prelu")(lambda x, a, k: refuse(True, "a layer with a parameter"))
some(F + "normalize")(lambda x, a, k: refuse(True, "x / x:norm(...)"))
some(F + "cosine_similarity")(lambda x, a, k: (lambda o, d, e: call(call("nn.CosineSimilarity", dim(d), e), x, o))(
    *bind(("other", "dim", "eps"), a, k)))
some(F + "pairwise_distance")(lambda x, a, k: refuse("eps" in k or "keepdim" in k or "p" in k, "options") or call("nn.PairwiseDistance()", x, *a))
some(F + "pixel_shuffle")(lambda x, a, k: call("nn.PixelShuffle(%s)" % lua(a[0]), x))
some(F + "pixel_unshuffle")(lambda x, a, k: call("nn.PixelUnshuffle(%s)" % lua(a[0]), x))
some(F + "channel_shuffle")(lambda x, a, k: call("nn.ChannelShuffle(%s)" % lua(a[0]), x))
some(F + "one_hot")(lambda x, a, k: call("gp.one_hot", x, *a))
some(F + "pad")(lambda x, a, k: pads(x, *bind(("pad", "mode", "value"), a, k)))
for n in (1, 2, 3):
    for kind in ("avg", "max"):
        @some(F + "%s_pool%dd" % (kind, n))
        def _(x, args, kw, n=n, kind=kind):
            names = ("kernel_size", "stride", "padding") + (("ceil_mode", "count_include_pad", "divisor_override") if kind == "avg" else ("dilation", "ceil_mode"))
            got = dict(zip(names, bind(names, args, kw)))
            refuse(kw.get("return_indices") or got.pop("divisor_override", None), "options")
            refuse(x.tensor.dim() != n + 2, "no batch")
            size = got.pop("kernel_size")
            one = lambda v: v[0] if len(v) == 1 else list(v) or None  # noqa: E731
            got = {key: one(v) if isinstance(v, tuple) else v for key, v in got.items() if v is not None}
            return call("nn.%sPool%dd(%s, %s)" % (kind.capitalize(), n, lua(list(size) if isinstance(size, tuple) else size), lua(got)), x)
for word, theirs in {"MSELoss": "mse_loss", "L1Loss": "l1_loss", "SoftMarginLoss": "soft_margin_loss",
                     "MultiLabelMarginLoss": "multilabel_margin_loss"}.items():
    CALLS[F + theirs] = loss(word)
CALLS[F + "smooth_l1_loss"] = loss("SmoothL1Loss", "beta")
CALLS[F + "huber_loss"] = loss("HuberLoss", "delta")
CALLS[F + "kl_div"] = loss("KLDivLoss", "log_target")
CALLS[F + "poisson_nll_loss"] = loss("PoissonNLLLoss", "log_input", "full", "eps")
CALLS[F + "binary_cross_entropy"] = loss("BCELoss", "weight")
CALLS[F + "binary_cross_entropy_with_logits"] = loss("BCEWithLogitsLoss", "weight", "pos_weight")
CALLS[F + "multilabel_soft_margin_loss"] = loss("MultiLabelSoftMarginLoss", "weight")
CALLS[F + "hinge_embedding_loss"] = loss("HingeEmbeddingLoss", "margin")


# ---- layers with parameters -------------------------------------------------------------------


def sized(value):
    value = list(value) if isinstance(value, (tuple, list)) else value
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def held(made, x, **tensors):
    names = {name: t.number for name, t in tensors.items() if t is not None}
    return "hold(%s, %s)(%s)" % (made, lua(names), x)


@some(F + "linear")
def _(x, args, kw):
    w, b = bind(("weight", "bias"), args, kw)
    refuse(w.tensor.dim() != 2, "a weight that is a vector")
    o, i = w.tensor.shape
    refuse(o == 0 or i == 0, "no units")
    return held("nn.Linear(%d, %d, {bias = %s, dtype = 'f64'})" % (i, o, lua(b is not None)), x, weight=w, bias=b)


for n in (1, 2, 3):
    for turned in (False, True):
        @some(F + "conv%s%dd" % ("_transpose" if turned else "", n))
        def _(x, args, kw, n=n, turned=turned):
            names = ("weight", "bias", "stride", "padding") + (("output_padding", "groups", "dilation") if turned else ("dilation", "groups"))
            got = dict(zip(names, bind(names, args, kw)))
            w, b = got.pop("weight"), got.pop("bias")
            refuse(x.tensor.dim() != n + 2, "no batch")
            groups = got.get("groups") or 1
            shape = w.tensor.shape
            i, o = (shape[0], shape[1] * groups) if turned else (shape[1] * groups, shape[0])
            options = {key: sized(v) for key, v in got.items() if v is not None}
            options.update(bias=b is not None, dtype="f64")
            return held("nn.Conv%s%dd(%d, %d, %s, %s)" % ("Transpose" if turned else "", n, i, o, lua(sized(shape[2:])), lua(options)), x, weight=w, bias=b)


@some(F + "layer_norm")
def _(x, args, kw):
    shape, w, b, eps = bind(("normalized_shape", "weight", "bias", "eps"), args, kw)
    refuse(b is not None and w is None, "a bias alone")
    options = {"eps": eps, "affine": w is not None, "bias": b is not None, "dtype": "f64"}
    return held("nn.LayerNorm(%s, %s)" % (lua(list(shape)), lua(options)), x, weight=w, bias=b)


@some(F + "rms_norm")
def _(x, args, kw):
    shape, w, eps = bind(("normalized_shape", "weight", "eps"), args, kw)
    refuse(eps is None, "eps of the dtype")
    return held("nn.RMSNorm(%s, %s)" % (lua(list(shape)), lua({"eps": eps, "affine": w is not None, "dtype": "f64"})), x, weight=w)


@some(F + "group_norm")
def _(x, args, kw):
    groups, w, b, eps = bind(("num_groups", "weight", "bias", "eps"), args, kw)
    refuse(w is None or b is None, "no weight or bias")
    return held("nn.GroupNorm(%d, %d, %s)" % (groups, x.tensor.shape[1], lua({"eps": eps, "dtype": "f64"})), x, weight=w, bias=b)


@some(F + "prelu")
def _(x, args, kw):
    w = args[0]
    refuse(w.tensor.dim() == 0 or x.tensor.dim() == 0, "scalars")
    return held("nn.PReLU(%d, nil, {dtype = 'f64'})" % w.tensor.numel(), x, weight=w)


@some(F + "bilinear")
def _(x, args, kw):
    y, w, b = bind(("y", "weight", "bias"), args, kw)
    o, i, j = w.tensor.shape
    names = lua({k: t.number for k, t in {"weight": w, "bias": b}.items() if t is not None})
    return "hold(nn.Bilinear(%d, %d, %d, {bias = %s, dtype = 'f64'}), %s)(%s, %s)" % (i, j, o, lua(b is not None), names, x, y)


@some(F + "embedding")
def _(x, args, kw):
    w, rest = args[0] if args else kw["weight"], {k: v for k, v in kw.items() if k != "weight"}
    refuse(rest or len(args) > 1, "options")
    refuse(x.tensor.dim() == 0, "a scalar id")
    return held("nn.Embedding(%d, %d, {dtype = 'f64'})" % tuple(w.tensor.shape), x, weight=w)


@some(F + "cross_entropy")
def _(x, args, kw):
    target, w, _, ignore, _, reduction, smoothing = bind(
        ("target", "weight", "a", "ignore_index", "b", "reduction", "label_smoothing"), args, kw)
    refuse(x.tensor.dim() != 2, "classes in the second of more dimensions")
    refuse(target.tensor.is_floating_point(), "targets that are probabilities")
    return "nn.CrossEntropyLoss%s(%s, %s)" % (lua({"weight": w, "ignore_index": ignore, "reduction": reduction,
                                                 "label_smoothing": smoothing}), x, target)


@some(F + "nll_loss")
def _(x, args, kw):
    refuse(x.tensor.dim() != 2, "classes in the second of more dimensions")
    return "nn.NLLLoss%s(%s, %s)" % (lua(dict(kw)), x, args[0])


for word, name, count in (("margin_ranking_loss", "MarginRankingLoss", 2), ("cosine_embedding_loss", "CosineEmbeddingLoss", 2),
                          ("triplet_margin_loss", "TripletMarginLoss", 2), ("gaussian_nll_loss", "GaussianNLLLoss", 2)):
    @some(F + word)
    def _(x, args, kw, name=name, count=count):
        return "nn.%s%s(%s)" % (name, lua(dict(kw)), ", ".join(map(str, [x] + list(args[:count]))))


@some(F + "multi_margin_loss")
def _(x, args, kw):
    return "nn.MultiMarginLoss%s(%s, %s)" % (lua(dict(kw)), x, args[0])


for n in (1, 2, 3):
    for kind in ("avg", "max"):
        @some(F + "adaptive_%s_pool%dd" % (kind, n))
        def _(x, args, kw, n=n, kind=kind):
            refuse(x.tensor.dim() != n + 2 or kw.get("return_indices"), "no batch")
            size = args[0] if args else kw["output_size"]
            refuse(not isinstance(size, int) and None in size, "a size that stays")
            return call("nn.Adaptive%sPool%dd(%s)" % (kind.capitalize(), n, lua(sized(size))), x)
some(F + "unfold")(lambda x, a, k: (lambda n, d, p, s: refuse(x.tensor.dim() != 4, "no batch") or call(
    "nn.Unfold(%s, %s)" % (lua(sized(n)), lua({"dilation": sized(d), "padding": sized(p), "stride": sized(s)})), x))(
    *bind(("kernel_size", "dilation", "padding", "stride"), a, k)))
some("aminmax")(lambda x, a, k: refuse("dim" not in k and "keepdim" in k, "keepdim of all") or method(x, "aminmax", dim(k.get("dim")), k.get("keepdim")))
some("allclose")(lambda x, a, k: method(x, "allclose", a[0], dict(k)))
some("vdot")(lambda x, a, k: method(x, "vdot", *a))
some("slice_scatter")(lambda x, a, k: refuse(len(a) > 4 and a[4] != 1, "a step") or refuse(True, "ends"))
some("diagonal_scatter")(lambda x, a, k: refuse(len(a) > 2 or k or x.tensor.dim() != 2, "dims of its own") or method(x, "diagonal_scatter", *a))
some("scatter_reduce")(lambda x, a, k: refuse(a[3] == "prod", "products") or method(
    x, "scatter_reduce", dim(a[0]), Raw("(%s + 1)" % a[1]), a[2], a[3], dict(k)))
some("linalg.matrix_rank")(lambda x, a, k: refuse(a or k, "options") or call("gp.linalg.matrix_rank", x))
some("unique_consecutive")(lambda x, a, k: refuse(k or a, "options") or "(%s)" % method(x, "unique_consecutive"))
some("unique")(lambda x, a, k: refuse(k or a, "options") or "(%s)" % method(x, "unique"))
some("triangular_solve")(lambda x, a, k: refuse(True, "gp.linalg.solve"))
for word in "bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift".split():
    CALLS[word] = binary(word)


class Raw(Ref):
    def __init__(self, text):
        self.text = text

    def __str__(self):
        return self.text


def refuse(when, why):
    if when:
        raise No(why)


def no_options(kw):
    refuse(kw, "options %s" % list(kw))


def of_dtype(kw):
    refuse(kw.get("dtype") is not None, "dtype")


def more(*values):
    refuse(any(v is not None for v in values), "more tensors")


def number(value):
    return Raw("%s:item()" % value) if isinstance(value, Ref) else value


def splits(x, parts, d):
    refuse(isinstance(parts, Ref), "positions in a tensor")
    refuse(not isinstance(parts, int) and any(p < 0 for p in parts), "negative positions")
    return method(x, "tensor_split", list(parts) if not isinstance(parts, int) else parts, dim(d) or 1)


def plain_diagonal(x, args, kw):
    refuse(len(args) > 1 or kw, "dims of its own")
    refuse(x.tensor.dim() != 2, "a batch")
    return method(x, "diagonal", *args)


def quantile(x, name, args, kw):
    q, d, keep, way = bind(("q", "dim", "keepdim", "interpolation"), args, kw)
    refuse(isinstance(q, Ref) and q.tensor.dim() > 0, "q as a tensor")
    refuse(d is None and keep, "keepdim of all")
    q = q.tensor.item() if isinstance(q, Ref) else q
    return method(x, name, q, dim(d), {"keep": keep, "interpolation": way})


def area(x, name, args, kw):
    at, d = (args[0] if args else None), kw.get("dim")
    at = kw.get("dx", at)
    refuse(isinstance(at, Ref) and at.tensor.dim() != 1, "places in more dimensions")
    return "%s:%s(%s%s)" % (x, name, lua(at), "" if d is None else ", " + lua(dim(d)))


def pads(x, sizes, mode, value):
    sizes = list(sizes)
    if mode in (None, "constant"):
        return method(x, "pad", sizes, "constant", 0 if value is None else value)
    names = {"reflect": "ReflectionPad", "replicate": "ReplicationPad", "circular": "CircularPad"}
    n = len(sizes) // 2
    refuse(x.tensor.dim() != n + 2, "no batch")
    return call("nn.%s%dd(%s)" % (names[mode], n, lua(sizes)), x)


# Calls that gpipe refuses on purpose: (operation, or None for all; a part of the error text; why).
DEVIATIONS = [
    (None, "the tensor is a scalar", "a scalar has no dimensions, PyTorch takes 0 and -1"),
    (None, "expected the same (convert with to)", "nothing is converted unasked"),
    (None, "convert one with", "nothing is converted unasked"),
    (None, "convert it with", "nothing is converted unasked"),
    (None, "expected a float one", "integers are no floats unasked"),
    (None, "positions are i32", "positions are i64"),
    (None, "numbers that are negative or NaN", "weights of losses are not negative"),
    (None, "weight is negative", "weights of losses are not negative"),
    (None, "eps", "eps is above 0"),
    ("nn.functional.embedding", "weight is i64", "embeddings are floats"),
    ("nn.functional.gaussian_nll_loss", "expected equal shapes", "targets of losses are not broadcast"),
    (None, "expected a number for each class", "a weight is one for each class"),
    ("logit", "<= 0.5", "an eps beyond 0.5 leaves nothing between"),
    ("squeeze", "expected 1", "a dimension that is not of size 1 is a mistake"),
    ("cat", "dim is 2", "an empty vector among matrices is a mistake"),
    ("tensordot", "expected as many", "sizes of 1 are not broadcast"),
    ("nn.functional.pad", "ad", "negative padding is of pad(), in mode constant"),
    ("nn.functional.multi_margin_loss", "expected scalar", "a row is a batch of one"),
    ("nn.functional.conv_transpose2d", "output", "output_padding is below the stride"),
    ("nn.functional.conv_transpose3d", "output", "output_padding is below the stride"),
    ("nn.functional.multilabel_margin_loss", "scalar", "a scalar has no classes"),
]

# Operations whose results in PyTorch gpipe does not follow, and why.
OWN = {
    "nn.functional.hardsigmoid": "its slope is 1/6 rounded to f32",
    "nn.functional.hinge_embedding_loss": "targets that are neither 1 nor -1",
}

# ---- running -----------------------------------------------------------------------------------

DTYPES = {torch.float64: "F64", torch.float32: "F32", torch.int64: "I64", torch.bool: "BOOL", torch.int32: "I32",
          torch.uint8: "U8"}


def save(path, tensors):
    header, at, parts = {}, 0, []
    for name, t in tensors.items():
        data = t.detach().contiguous().numpy().tobytes()
        header[name] = {"dtype": DTYPES[t.dtype], "shape": list(t.shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
        parts.append(data)
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(parts))


def load(path):
    with open(path, "rb") as f:
        data = f.read()
    n = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8:8 + n]).items():
        if name == "__metadata__":
            continue
        a, b = entry["data_offsets"]
        raw = bytearray(data[8 + n + a:8 + n + b])
        flat = torch.frombuffer(raw, dtype=torch.float64) if raw else torch.zeros(0, dtype=torch.float64)
        tensors[name] = flat.reshape(entry["shape"])
    return tensors


class Case:
    def __init__(self, op, sample, wrong=None):
        self.op, self.sample, self.wrong, self.tensors = op, sample, wrong, []
        x = self.refer(sample.input)
        args = [self.refer(a) for a in sample.args]
        kwargs = {k: self.refer(v) for k, v in sample.kwargs.items()}
        self.code = str(CALLS[op.name](x, args, kwargs))
        self.leaves = [i for i, t in enumerate(self.tensors) if t.requires_grad]

    def refer(self, value):
        if torch.is_tensor(value):
            refuse(value.dtype not in DTYPES, "dtype %s" % value.dtype)
            refuse(value.numel() > BIG or value.dim() > 8, "large")
            self.tensors.append(value)
            return Ref(len(self.tensors), value)
        if isinstance(value, (tuple, list)) and any(torch.is_tensor(v) for v in value):
            return [self.refer(v) for v in value]
        if isinstance(value, torch.Size):
            return tuple(value)
        return value

    def lua(self):
        leaves = ", ".join("[%d] = true" % (i + 1) for i in self.leaves)
        return "{code = %s, tensors = %d, leaves = {%s}}," % (json.dumps(self.code), len(self.tensors), leaves)

    def expected(self):
        y = self.op(self.sample.input, *self.sample.args, **self.sample.kwargs)
        outputs = [y] if torch.is_tensor(y) or not isinstance(y, (tuple, list)) else list(y)
        total = None
        for t in outputs:
            if torch.is_tensor(t) and t.requires_grad:
                weights = torch.arange(1, t.numel() + 1, dtype=torch.float64).sin().reshape(t.shape)
                total = (t * weights).sum() + (0 if total is None else total)
        grads = {}
        if total is not None and self.leaves:
            got = torch.autograd.grad(total, [self.tensors[i] for i in self.leaves], allow_unused=True)
            grads = {i: g for i, g in zip(self.leaves, got) if g is not None}
        return [torch.as_tensor(t).double() for t in outputs], grads


POSITIONS = {"argmax", "argmin", "argsort", "argwhere", "nonzero"}  # ours count from 1
PAIRS = {"max", "min", "median", "nanmedian", "mode", "sort", "topk", "kthvalue", "cummax", "cummin"}


def differs(want, got):
    if list(want.shape) != list(got.shape):
        return "shape %s, expected %s" % (list(got.shape), list(want.shape))
    near = torch.isclose(got, want, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)
    if near.all():
        return None
    at = (~near).reshape(-1).nonzero()[0].item()
    return "element %d is %.17g, expected %.17g" % (at, got.reshape(-1)[at], want.reshape(-1)[at])


def judge(case, number, results, raised):
    """What is wrong, or None."""
    text = raised.get(number)
    if case.wrong:
        return None if text or "dtype" in case.wrong else "answers where PyTorch raises: %s" % str(case.wrong)[:90]
    want, grads = case.expected()
    if text:
        if any(name in (None, case.op.name) and part in text for name, part, _ in DEVIATIONS):
            return None
        return "raised: " + text[:150]
    for k, t in enumerate(want):
        got = results.get("%d.%d" % (number, k + 1))
        if got is None and k == 1 and "adaptive_max" in case.op.name:
            continue  # PyTorch's list calls the form that returns indices
        if got is None:
            return "output %d is missing" % (k + 1)
        if case.op.name in POSITIONS or k == 1 and case.op.name in PAIRS:
            got = got - 1
        why = differs(t, got)
        if why:
            return "output %d: %s" % (k + 1, why)
    for i, g in grads.items():
        got = results.get("%d.grad.%d" % (number, i + 1))
        why = differs(g, got) if got is not None else (None if not g.any() else "none")
        if why:
            return "gradient of tensor %d: %s" % (i + 1, why)
    return None


def cases_of(op, skipped):
    made = []
    samples = op.sample_inputs("cpu", torch.float64, requires_grad=op.supports_autograd)
    for sample in list(samples)[:MOST]:
        try:
            made.append(Case(op, sample))
        except (No, LookupError, TypeError, AttributeError) as why:
            reason = str(why)[:40] if isinstance(why, No) else "form"
            skipped[reason] = skipped.get(reason, 0) + 1
    try:
        errors = list(op.error_inputs("cpu")) if op.error_inputs_func else []
    except Exception:
        errors = []
    for wrong in errors:
        if any(part in wrong.error_regex for part in ("unsupported operation", " out ", "out to match", "got None", "single memory", "overlap", "0-dimensional value")):  # errors about out=
            continue
        try:
            made.append(Case(op, wrong.sample_input, wrong.error_regex))
        except Exception:
            pass
    return made


def run(program, op, folder):
    skipped = {}
    cases = cases_of(op, skipped)
    tensors = {"%d.%d" % (n, i + 1): t for n, c in enumerate(cases, 1) for i, t in enumerate(c.tensors)}
    with open(folder + "/cases.lua", "w") as f:
        f.write("return {\n%s\n}\n" % "\n".join(c.lua() for c in cases))
    save(folder + "/in", tensors)
    got = subprocess.run([program, "tests/golden/inventory.lua", folder + "/cases.lua", folder + "/in", folder + "/out.safetensors"],
                         capture_output=True, text=True, timeout=300)
    if got.returncode != 0:
        return len(cases), [(None, "ended with %d: %s" % (got.returncode, got.stderr[-300:]))], skipped
    raised = dict((int(n), text) for n, text in (line.split("\t", 1) for line in got.stdout.splitlines() if "\t" in line))
    results = load(folder + "/out.safetensors")
    faults = []
    for number, case in enumerate(cases, 1):
        try:
            why = judge(case, number, results, raised)
        except Exception as e:  # PyTorch raises where its own list expects none
            why = None if raised.get(number) or "must be Tensor" in str(e) else "PyTorch raises: %s" % str(e)[:80]
        if why and case.op.name not in OWN:
            faults.append((case, why))
    return len(cases), faults, skipped


def main():
    program, names = sys.argv[1], set(sys.argv[2:])
    total, wrong, missing = 0, 0, set()
    with tempfile.TemporaryDirectory() as folder:
        for op in op_db:
            if torch.float64 not in op.dtypes or names and op.name not in names:
                continue
            if op.name not in CALLS:
                missing.add(op.name)
                continue
            count, faults, skipped = run(program, op, folder)
            total, wrong = total + count, wrong + len(faults)
            line = "%-28s %3d cases, %d differ" % ((op.name + " " + op.variant_test_name).strip(), count, len(faults))
            if skipped:
                line += "; not mapped: " + ", ".join("%d %s" % (n, why) for why, n in skipped.items())
            print(line, flush=True)
            for case, why in faults[:6]:
                print("    %s%s\n        %s" % (case.code if case else "", [tuple(t.shape) for t in case.tensors] if case else "", why))
    print("%d cases, %d differ" % (total, wrong))
    print("not compared, with how often PyTorch's own code calls them (%d):" % len(missing))
    print(" ".join("%s:%d" % (name, n) for n, name in by_use(missing)))
    name_parts(program)
    sys.exit(1 if wrong else 0)


def name_parts(program):
    """Modules, optimizers and rates of PyTorch without a counterpart of their name."""
    from torch.testing._internal.common_modules import module_db
    from torch.testing._internal.common_optimizers import optim_db
    modules = {m.module_cls.__name__ for m in module_db}
    lists = {"gp.nn": modules, "gp.optim": {o.optim_cls.__name__ for o in optim_db}}
    for place, names in lists.items():
        code = "local gp = require 'gpipe' for name in ('%s'):gmatch '%%S+' do if not rawget(%s, name) then io.write(name, ' ') end end"
        got = subprocess.run([program, "-e", code % (" ".join(sorted(names)), place)], capture_output=True, text=True)
        print("not in %s, of %d: %s" % (place, len(names), got.stdout))


def by_use(names):
    """Names with how often PyTorch's own Python calls them, the most used first."""
    folder = os.path.dirname(torch.__file__)
    counts = collections.Counter()
    for path in glob.glob(folder + "/**/*.py", recursive=True):
        if "testing" in path:
            continue
        with open(path, errors="ignore") as f:
            counts.update(re.findall(r"\.([a-z_0-9]+)\(", f.read()))
    return sorted(((counts[name.split(".")[-1]], name) for name in names), reverse=True)



if __name__ == "__main__":
    main()
