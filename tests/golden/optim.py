"""tests/golden/optim.py - writes tests/golden/optim.lua: 20 steps of optimizers in PyTorch, for
tests/spec/optim/golden_spec.lua.

    python tests/golden/optim.py > tests/golden/optim.lua

Values and gradients are made by the formula of numbers() in layers.py, on both sides. A case gives
the values after some of the steps, in f32 and in f64. Lion, which PyTorch does not have, is the
formula of its paper in PyTorch's operations. Schedules give their rates, step by step.
"""
import torch

from layers import numbers

COUNT, STEPS, SHOWN = 11, 20, (1, 2, 20)


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                mean = self.state[p].setdefault("mean", torch.zeros_like(p))
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_(mean.mul(beta1).add(p.grad, alpha=1 - beta1).sign(), alpha=-group["lr"])
                mean.mul_(beta2).add_(p.grad, alpha=1 - beta2)


def put(line):
    """In lines of at most 110 columns, broken behind commas."""
    while len(line) > 110:
        at = line.rindex(", ", 0, 110) + 1
        print(line[:at])
        line = "      " + line[at + 1:]
    print(line)


def lua(value):
    if value is None:
        return "false"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k} = {lua(v)}" for k, v in value.items()) + "}"
    if isinstance(value, tuple):
        return "{" + ", ".join(lua(v) for v in value) + "}"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def optimizer(name, **options):
    make = Lion if name == "Lion" else getattr(torch.optim, name)
    print(f'  {{"{name}", {lua(options)},')
    for dtype, form in ((torch.float32, "%.9g"), (torch.float64, "%.17g")):
        p = numbers(1, (COUNT,)).to(dtype).requires_grad_()
        opt = make([p], **options)
        shown = []
        for step in range(1, STEPS + 1):
            p.grad = numbers(1 + step, (COUNT,), 0.3).to(dtype)
            torch.set_default_dtype(dtype)  # NAdam keeps numbers beside its moments in this dtype
            opt.step()
            torch.set_default_dtype(torch.float32)
            if step in SHOWN:
                shown.append("{" + ", ".join(form % v for v in p.tolist()) + "}")
        put("    {" + ", ".join(shown) + "},")
    print("  },")


def whole(name, *shape, **options):
    """As optimizer(), of a matrix or vector that is shown after the last step; PyTorch's Muon
    rounds to bf16 on its way, which is left out."""
    put(f'  {{"{name}", {lua(shape)}, {lua(options)},')
    torch.optim._muon.torch = TORCH
    for dtype, form in ((torch.float32, "%.9g"), (torch.float64, "%.17g")):
        TORCH.bfloat16 = dtype
        p = numbers(1, shape).to(dtype).requires_grad_()
        opt = getattr(torch.optim, name)([p], **options)
        for step in range(1, 6):
            p.grad = numbers(1 + step, shape, 0.3).to(dtype)
            opt.step()
        put("    {" + ", ".join(form % v for v in p.reshape(-1).tolist()) + "},")
    print("  },")


class Torch:
    def __getattr__(self, name):
        return getattr(torch, name)


TORCH = Torch()


def rates(name, make, steps, metrics=None):
    opt = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.5, momentum=0.9)
    schedule = make(opt)
    shown = []
    for step in range(steps):
        if metrics:
            schedule.step(metrics[step])
        shown.append("%.17g" % opt.param_groups[0]["lr"])
        if not metrics and step < steps - 1:
            opt.step()
            schedule.step()
    print(f'  {{"{name}",')
    put("    {" + ", ".join(shown) + "}},")


S = torch.optim.lr_scheduler
METRICS = [5, 4, 3, 3, 3.1, 3, 2.9999, 2.9, 2.95, 2.9, 2.92, 2.91, 2, 2, 2, 2, 2, 2, 2, 2]

print("-- tests/golden/optim.lua - written by optim.py with PyTorch %s." % torch.__version__)
print("-- luacheck: no max line length\nreturn { optimizers = {")
optimizer("SGD", lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01)
optimizer("Adam", lr=0.01, weight_decay=0.1)
optimizer("AdamW", lr=0.01)
optimizer("RMSprop")
optimizer("RMSprop", lr=0.001, alpha=0.9, momentum=0.9, weight_decay=0.1)
optimizer("RMSprop", lr=0.001, centered=True, eps=0.001)
optimizer("RMSprop", lr=0.001, alpha=0.9, centered=True, momentum=0.5, eps=0.001, weight_decay=0.1)
optimizer("Adagrad")
optimizer("Adagrad", lr=0.1, lr_decay=0.1, weight_decay=0.1, initial_accumulator_value=0.5, eps=1e-6)
optimizer("Lion")
optimizer("Lion", lr=0.01, betas=(0.8, 0.6), weight_decay=0.1)
optimizer("Adamax")
optimizer("Adamax", lr=0.01, betas=(0.8, 0.9), weight_decay=0.1)
optimizer("Adadelta")
optimizer("Adadelta", lr=0.5, rho=0.8, eps=1e-3, weight_decay=0.1)
optimizer("NAdam")
optimizer("NAdam", lr=0.01, betas=(0.8, 0.99), momentum_decay=0.1, weight_decay=0.1)
optimizer("NAdam", lr=0.01, weight_decay=0.1, decoupled_weight_decay=True)
optimizer("Adam", lr=0.01, betas=(0.9, 0.5), amsgrad=True)
optimizer("AdamW", lr=0.01, betas=(0.5, 0.5), amsgrad=True)
optimizer("SGD", lr=0.1, momentum=0.9, dampening=0.3, weight_decay=0.01)
optimizer("SGD")
optimizer("Adam")
optimizer("AdamW")
optimizer("RAdam")
optimizer("RAdam", lr=0.01, betas=(0.8, 0.9), weight_decay=0.1)
optimizer("RAdam", lr=0.01, weight_decay=0.1, decoupled_weight_decay=True)
optimizer("Rprop")
optimizer("Rprop", lr=0.1, etas=(0.3, 1.5), step_sizes=(0.01, 0.2))
print("}, whole = {")
whole("Muon", 6, 4)
whole("Muon", 3, 5, lr=0.02, weight_decay=0.3, momentum=0.8, nesterov=False, ns_steps=3, adjust_lr_fn="match_rms_adamw")
whole("Adafactor", 6, 4)
whole("Adafactor", 7)
whole("Adafactor", 2, 3, 4, lr=0.5, beta2_decay=-0.5, eps=(1e-10, 0.1), d=2.0, weight_decay=0.1)
print("}, metrics = " + lua(tuple(METRICS)) + ", rates = {")
rates("exponential{max = 0.5, factor = 0.9}", lambda o: S.ExponentialLR(o, 0.9), 10)
rates("one_cycle{max = 0.5, steps = 20}", lambda o: S.OneCycleLR(o, 0.5, 20), 20)
rates("one_cycle{max = 0.5, steps = 20, rise = 0.4, shape = 'linear', first = 0.1, last = 0.001}",
      lambda o: S.OneCycleLR(o, 0.5, 20, pct_start=0.4, anneal_strategy="linear", div_factor=5, final_div_factor=100), 20)
rates("one_cycle{max = 0.5, steps = 21, three_phases = true}",
      lambda o: S.OneCycleLR(o, 0.5, 21, three_phase=True), 21)
rates("plateau{max = 0.5, factor = 0.5, patience = 2}",
      lambda o: S.ReduceLROnPlateau(o, factor=0.5, patience=2), 20, METRICS)
rates("plateau{max = 0.5, factor = 0.1, patience = 0, cooldown = 2, min = 0.004, threshold = 0.01, relative = false}",
      lambda o: S.ReduceLROnPlateau(o, factor=0.1, patience=0, cooldown=2, min_lr=0.004, threshold=0.01, threshold_mode="abs"), 20, METRICS)
rates("plateau{max = 0.5, patience = 3, rising = true}",
      lambda o: S.ReduceLROnPlateau(o, mode="max", patience=3), 20, METRICS)
rates("multi_step{max = 0.5, at = {3, 7}, factor = 0.2}", lambda o: S.MultiStepLR(o, [3, 7], 0.2), 12)
rates("polynomial{max = 0.5, steps = 8, power = 1.5}", lambda o: S.PolynomialLR(o, 8, 1.5), 12)
rates("cyclic{min = 0.1, max = 0.5, up = 4, down = 3}", lambda o: S.CyclicLR(o, 0.1, 0.5, 4, 3), 20)
rates("cyclic{min = 0.1, max = 0.5, up = 3, mode = 'triangular2'}",
      lambda o: S.CyclicLR(o, 0.1, 0.5, 3, mode="triangular2"), 20)
rates("cyclic{min = 0.1, max = 0.5, up = 3, mode = 'exp_range', factor = 0.9}",
      lambda o: S.CyclicLR(o, 0.1, 0.5, 3, mode="exp_range", gamma=0.9), 20)
rates("warm_restarts{max = 0.5, steps = 4, min = 0.01}",
      lambda o: S.CosineAnnealingWarmRestarts(o, 4, eta_min=0.01), 20)
rates("warm_restarts{max = 0.5, steps = 3, times = 2}",
      lambda o: S.CosineAnnealingWarmRestarts(o, 3, 2), 25)
rates("sequential{{gp.optim.schedule.constant(0.5), 3}, {gp.optim.schedule.exponential{max = 0.5, factor = 0.9}, 4},"
      " {gp.optim.schedule.multi_step{max = 0.5, at = {2}}}}",
      lambda o: S.SequentialLR(o, [S.ConstantLR(o, 1), S.ExponentialLR(o, 0.9), S.MultiStepLR(o, [2])], [3, 7]), 12)
print("} }")
