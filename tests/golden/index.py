"""tests/golden/index.py - writes tests/golden/index.lua: what PyTorch computes for methods along a
dimension, for tests/spec/ops/along_spec.lua.

    python tests/golden/index.py > tests/golden/index.lua

A case is a call on tensors that both sides make: t of 3 x 5 has ((31 i^2 + 7919 i) mod 1009) / 1009
as element i, s of 3 x 4 the same with 104729 added, t0 is t with three zeros, p has positions.
Written are the result and the gradients of the sum of the squared result.
"""
import torch

torch.set_num_threads(1)


def numbers(k, n):
    return [((31 * i * i + 7919 * i + 104729 * k) % 1009) / 1009 for i in range(n)]


def tensors():
    t = torch.tensor(numbers(0, 15), dtype=torch.float64).reshape(3, 5)
    t0 = t.clone()
    t0.view(-1)[1] = t0.view(-1)[6] = t0.view(-1)[8] = 0
    s = torch.tensor(numbers(1, 12), dtype=torch.float64).reshape(3, 4)
    p = torch.tensor([[i * i % 5 for i in range(j, j + 4)] for j in range(3)])
    return t.requires_grad_(), t0.requires_grad_(), s.requires_grad_(), p


CASES = [
    ("t:gather(2, p)", lambda t, t0, s, p: t.gather(1, p)),
    ("t:scatter_add(2, p, s)", lambda t, t0, s, p: t.scatter_add(1, p, s)),
    ("t:cumsum(1)", lambda t, t0, s, p: t.cumsum(0)),
    ("t:cumsum(2)", lambda t, t0, s, p: t.cumsum(1)),
    ("t:prod()", lambda t, t0, s, p: t.prod()),
    ("t0:prod(1)", lambda t, t0, s, p: t0.prod(0)),
    ("t0:prod(2)", lambda t, t0, s, p: t0.prod(1)),
    ("t:sort(2)", lambda t, t0, s, p: t.sort(1)[0]),
    ("t:sort(1, {descending = true})", lambda t, t0, s, p: t.sort(0, descending=True)[0]),
    ("t:topk(2, 2)", lambda t, t0, s, p: t.topk(2, 1)[0]),
    ("t:topk(2, 1, {largest = false})", lambda t, t0, s, p: t.topk(2, 0, largest=False)[0]),
    ("t:median(2)", lambda t, t0, s, p: t.median(1)[0]),
    ("t:median()", lambda t, t0, s, p: t.median()),
]


def listed(x):
    return "{ " + ", ".join("%.9g" % v for v in x.detach().reshape(-1).tolist()) + " }"


print("-- tests/golden/index.lua - written by tests/golden/index.py with PyTorch %s; not edited."
      % torch.__version__.split("+")[0])
print("-- luacheck: no max line length\n\nreturn {")
for call, f in CASES:
    t, t0, s, p = tensors()
    y = f(t, t0, s, p)
    (y * y).sum().backward()
    grads = ["%s = %s" % (n, listed(x.grad)) for n, x in (("t", t), ("t0", t0), ("s", s))
             if x.grad is not None]
    print("  { call = [[%s]], y = %s, %s }," % (call, listed(y), ", ".join(grads)))
print("}")
