"""tests/golden/losses.py - writes tests/golden/losses.lua: losses of several labels, of variances and
of sequences in PyTorch, with their gradients, for tests/spec/nn/golden_losses_spec.lua.

    python tests/golden/losses.py > tests/golden/losses.lua

Values are made by the formula of numbers() in layers.py, on both sides. A case gives the name, the
options, what the loss is called with, its value and the gradients of what is of floats, in f64.
"""
import torch

from layers import numbers


def lua(value):
    if isinstance(value, tuple):
        return "{" + ", ".join(lua(v) for v in value) + "}"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def put_text(line):
    """In lines of at most 110 columns, broken behind commas."""
    while len(line) > 110:
        at = line.rindex(", ", 0, 110) + 1
        print(line[:at])
        line = "    " + line[at + 1:]
    print(line)


def flat(t, form="%.17g"):
    return "{" + ", ".join(form % v for v in t.reshape(-1).tolist()) + "}"


def case(name, options, inputs, time_first=False, **lua_options):
    made = []
    for x in inputs:
        made.append(x.double().clone().requires_grad_() if x.is_floating_point() else x)
    args = list(made)
    if time_first:
        args[0] = torch.log_softmax(args[0], -1).transpose(0, 1)
    loss = getattr(torch.nn, name)(**options)(*args)
    loss.sum().backward()
    shown = ", ".join("{{%s}, %s, %s}" % (", ".join(map(str, x.shape)), flat(x.detach(), "%.17g" if
                      x.is_floating_point() else "%d"), '"f64"' if x.is_floating_point() else '"i64"') for x in made)
    grads = ", ".join(flat(x.grad) for x in made if x.is_floating_point() and x.grad is not None)
    options = dict(options)
    if "weight" in options:
        options["weight"] = tuple(options["weight"].tolist())
    for key, value in options.items():
        if isinstance(value, str):
            options[key] = '"' + value + '"'
    text = "{" + ", ".join("%s = %s" % (k, v if isinstance(v, str) else lua(v)) for k, v in options.items()) + "}"
    put_text('  {"%s", %s, {%s}, %s, {%s}},' % (name, text, shown, flat(loss.detach()), grads))


def main():
    x = numbers(1, (5, 4)) * 3
    ids = torch.tensor([0, 3, 1, 2, 3])
    weight = numbers(2, (4,)).abs().double()
    print("-- tests/golden/losses.lua - written by losses.py with PyTorch %s." % torch.__version__)
    print("return {")
    for options in ({}, {"p": 2}, {"margin": 0.5, "weight": weight}, {"reduction": "sum"}, {"reduction": "none", "p": 2}):
        case("MultiMarginLoss", options, (x, ids))
    many = torch.tensor([[3, 0, -1, 1], [-1, 0, 0, 0], [0, 1, 2, 3], [2, -1, 3, -1], [1, 1, -1, 2]])
    for options in ({}, {"reduction": "sum"}, {"reduction": "none"}):
        case("MultiLabelMarginLoss", options, (x, many))
    given = (numbers(3, (5, 4)) > 0).double()
    for options in ({}, {"weight": weight}, {"reduction": "sum"}, {"reduction": "none"}):
        case("MultiLabelSoftMarginLoss", options, (x, given))
    y, var = numbers(4, (5, 4)), numbers(5, (5, 4)).abs()
    var[0, 0] = 0
    for options in ({}, {"full": True}, {"eps": 0.1, "reduction": "sum"}, {"reduction": "none"}):
        case("GaussianNLLLoss", options, (x, y, var))
    case("GaussianNLLLoss", {}, (x, y, var[:, :1].contiguous()))
    case("GaussianNLLLoss", {}, (x, y, var[:, 1].contiguous()))
    log_probs = numbers(6, (3, 9, 5)).double() * 2
    labels = torch.tensor([[1, 2, 2, 4], [3, 1, 0, 0], [4, 4, 4, 4]])
    for options in ({}, {"reduction": "sum"}, {"reduction": "none"}):
        case("CTCLoss", options, (log_probs, labels, torch.tensor([9, 7, 8]), torch.tensor([4, 2, 3])), True)
    case("CTCLoss", {"blank": 2}, (log_probs, torch.tensor([[1, 1, 4], [3, 1, 0], [4, 4, 3]]),
                                   torch.tensor([9, 5, 8]), torch.tensor([3, 0, 2])), True)
    case("CTCLoss", {"zero_infinity": True}, (log_probs, labels, torch.tensor([9, 7, 4]), torch.tensor([4, 2, 4])), True)
    case("CTCLoss", {}, (log_probs, torch.tensor([1, 2, 2, 3, 4, 4]), torch.tensor([9, 7, 8]), torch.tensor([3, 1, 2])), True)
    print("}")


main()
