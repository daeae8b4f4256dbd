"""tests/golden/lbfgs.py - writes tests/golden/lbfgs.lua: LBFGS of PyTorch on Rosenbrock's function of
six numbers in f64, for tests/spec/optim/lbfgs_spec.lua.

    python tests/golden/lbfgs.py > tests/golden/lbfgs.lua

A case gives the options, and for each of four steps the loss at its start, how often the function
was computed so far, and the numbers behind it.
"""
import torch

def lua(options):
    return "{" + ", ".join(f"{k} = {v!r}" for k, v in options.items()) + "}"


def case(**options):
    x = torch.tensor([-1.2, 1.0, 0.5, -0.3, 0.8, 1.7], dtype=torch.float64, requires_grad=True)
    opt = torch.optim.LBFGS([x], **options)
    count = 0

    def closure():
        nonlocal count
        count += 1
        opt.zero_grad()
        loss = (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()
        loss.backward()
        return loss

    print("  {%s, {" % lua(options))
    for _ in range(4):
        loss = opt.step(closure).item()
        print("    {%.9g, %d, {%s}}," % (loss, count, ", ".join("%.9g" % v for v in x.tolist())))
    print("  }},")


print("-- tests/golden/lbfgs.lua - written by lbfgs.py with PyTorch %s." % torch.__version__)
print("return {")
case(line_search_fn="strong_wolfe")
case(line_search_fn="strong_wolfe", max_iter=7, history_size=3, lr=0.5)
case(line_search_fn="strong_wolfe", max_iter=4, max_eval=6)
case(lr=0.001, max_iter=5)
case(lr=0.01, max_iter=3, history_size=1)
print("}")
