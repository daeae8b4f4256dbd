# scripts/bench/sweep_optuna.py - what Optuna finds on the functions of
# tests/support/landscapes.lua: the median over 20 seeds of the least value of 50 trials, above the
# least there is. It was run once for docs/sweeps.md: python scripts/bench/sweep_optuna.py (pip
# install optuna).
import math
import statistics
import sys
import warnings

import optuna

optuna.logging.set_verbosity(optuna.logging.ERROR)
warnings.filterwarnings("ignore")
SEEDS, TRIALS = 20, 50
pi, cos, sin, exp, sqrt = math.pi, math.cos, math.sin, math.exp, math.sqrt


def box(n, low, high):
    return lambda t: [t.suggest_float(f"x{i + 1}", low, high) for i in range(n)]


def branin(t):
    x, y = t.suggest_float("x1", -5, 10), t.suggest_float("x2", 0, 15)
    a = y - 5.1 / (4 * pi**2) * x**2 + 5 / pi * x - 6
    return a**2 + 10 * (1 - 1 / (8 * pi)) * cos(x) + 10


def hartmann(n, scales, places):
    def f(t):
        x = box(n, 0, 1)(t)
        return -sum(a * exp(-sum(s * (v - 1e-4 * p) ** 2 for s, v, p in zip(ss, x, ps)))
                    for a, ss, ps in zip((1, 1.2, 3, 3.2), scales, places))
    return f


def rosenbrock(t):
    x = box(4, -5, 10)(t)
    return sum(100 * (b - a**2) ** 2 + (a - 1) ** 2 for a, b in zip(x, x[1:]))


def ackley(t):
    x = box(5, -32.768, 32.768)(t)
    return (-20 * exp(-0.2 * sqrt(sum(v**2 for v in x) / 5))
            - exp(sum(cos(2 * pi * v) for v in x) / 5) + 20 + exp(1))


def rastrigin(t):
    return sum(v**2 - 10 * cos(2 * pi * v) + 10 for v in box(4, -5.12, 5.12)(t))


def levy(t):
    w = [1 + (v - 1) / 4 for v in box(4, -10, 10)(t)]
    return (sin(pi * w[0]) ** 2 + (w[-1] - 1) ** 2 * (1 + sin(2 * pi * w[-1]) ** 2)
            + sum((v - 1) ** 2 * (1 + 10 * sin(pi * v + 1) ** 2) for v in w[:-1]))


def styblinski_tang(t):
    return sum((v**4 - 16 * v**2 + 5 * v) / 2 for v in box(4, -5, 5)(t))


def mixed(t):
    lr, width = t.suggest_float("lr", 1e-6, 1, log=True), t.suggest_int("width", 8, 2048, log=True)
    layers = t.suggest_int("layers", 1, 12)
    kind = t.suggest_categorical("kind", ["relu", "gelu", "tanh", "silu"])
    dropout = t.suggest_float("dropout", 0, 0.9)
    worth = {"relu": 0.3, "gelu": 0, "tanh": 1, "silu": 0.1}
    a = math.log10(lr) + 3 + 0.2 * math.log2(width / 128)
    return (a**2 + 0.1 * math.log2(width / 256) ** 2 + 0.05 * (layers - 5) ** 2 + worth[kind]
            + 4 * (dropout - 0.1) ** 2)


def conditional(t):
    optimizer = t.suggest_categorical("optimizer", ["sgd", "adam", "lion"])
    value = 2 * (t.suggest_float("decay", 0, 1) - 0.3) ** 2
    if optimizer == "sgd":
        lr = t.suggest_float("lr_sgd", 1e-3, 10, log=True)
        momentum = t.suggest_float("momentum", 0, 1)
        return value + 0.3 + (math.log10(lr) + 1) ** 2 + 3 * (momentum - 0.9) ** 2
    lr = t.suggest_float("lr", 1e-6, 1e-1, log=True)
    beta = t.suggest_float("beta", 0.5, 1)
    return (value + (0.5 if optimizer == "lion" else 0) + (math.log10(lr) + 3) ** 2
            + 10 * (beta - 0.9) ** 2)


SCALES3 = [[3, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]]
PLACES3 = [[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]]
SCALES6 = [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8],
           [17, 8, 0.05, 10, 0.1, 14]]
PLACES6 = [[1312, 1696, 5569, 124, 8283, 5886], [2329, 4135, 8307, 3736, 1004, 9991],
           [2348, 1451, 3522, 2883, 3047, 6650], [4047, 8828, 8732, 5743, 1091, 381]]
FUNCTIONS = [
    ("branin", 0.397887, branin), ("hartmann3", -3.86278, hartmann(3, SCALES3, PLACES3)),
    ("hartmann6", -3.32237, hartmann(6, SCALES6, PLACES6)), ("rosenbrock", 0, rosenbrock),
    ("ackley", 0, ackley), ("rastrigin", 0, rastrigin), ("levy", 0, levy),
    ("styblinski-tang", -39.16617 * 4, styblinski_tang), ("mixed", 0, mixed),
    ("conditional", 0, conditional),
]
SAMPLERS = [
    ("random", lambda seed: optuna.samplers.RandomSampler(seed=seed)),
    ("tpe", lambda seed: optuna.samplers.TPESampler(seed=seed)),
    ("multivariate", lambda seed: optuna.samplers.TPESampler(seed=seed, multivariate=True,
                                                            group=True)),
]

print("optuna", optuna.__version__)
for name, least, f in FUNCTIONS:
    figures = []
    for kind, sampler in SAMPLERS:
        found = []
        for seed in range(1, SEEDS + 1):
            study = optuna.create_study(sampler=sampler(seed))
            study.optimize(f, n_trials=TRIALS)
            found.append(study.best_value)
        figures.append(f"{kind} {statistics.median(found) - least:.4g}")
    print(f"{name:16s} " + "  ".join(figures))
    sys.stdout.flush()
