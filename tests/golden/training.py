"""tests/golden/training.py - writes tests/golden/training.lua: 20 steps of training small models in
PyTorch, for tests/spec/nn/golden_spec.lua (a ResNet block is in norms.py).

    python tests/golden/training.py > tests/golden/training.lua

Inputs and first values are made by the formula of numbers() in layers.py, on both sides. A case gives
the loss of every step and, of each parameter at the end, at most KEPT elements.
"""
import torch
from torch import nn
import torch.nn.functional as F

from layers import fill, make_input, text

STEPS = 20


class First(nn.Module):
    """The outputs of a recurrent layer."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x)[0]


def cross_entropy(y, target):
    return F.cross_entropy(y.flatten(0, -2), target.flatten())


LSTM = ("nn.Sequential {nn.LSTM(3, 5, {layers = 2, bidirectional = true}), nn.GRU(10, 4), nn.Linear(4, 2)}",
        lambda: nn.Sequential(First(nn.LSTM(3, 5, 2, bidirectional=True, batch_first=True)),
                              First(nn.GRU(10, 4, batch_first=True)), nn.Linear(4, 2)),
        [("fixed", (3, 7, 3)), ("fixed", (3, 7, 2))], "nn.MSELoss()", F.mse_loss)
BLOCK = ('nn.Sequential {nn.Linear(3, 8), nn.TransformerEncoderLayer(8, 2, 12, {dropout = 0, norm_first = true, activation = "gelu"}), '
         "nn.TransformerEncoderLayer(8, 2, 12, {dropout = 0}), nn.Linear(8, 5)}",
         lambda: nn.Sequential(
             nn.Linear(3, 8), nn.TransformerEncoderLayer(8, 2, 12, 0.0, "gelu", batch_first=True, norm_first=True),
             nn.TransformerEncoderLayer(8, 2, 12, 0.0, batch_first=True), nn.Linear(8, 5)),
         [("fixed", (3, 7, 3)), ("ids", (3, 7), 5)], "nn.CrossEntropyLoss()", cross_entropy)

# eps is large, so that gradients that are 0 except for rounding (those of the biases of keys) stay
# so.
ADAMW = ("optim.AdamW", "{lr = 0.01, weight_decay = 0.1, eps = 0.001}",
         lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1, eps=0.001))
SGD = ("optim.SGD", "{lr = 0.1, momentum = 0.9, nesterov = true, weight_decay = 0.01}",
       lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01))


def train(model_case, optimizer_case):
    lua, make, inputs, lua_loss, loss_of = model_case
    kind, options, optimizer = optimizer_case
    model = make()
    fill(model)
    (x, x_spec), (y, y_spec) = [make_input(1 + i, spec) for i, spec in enumerate(inputs)]
    opt, losses = optimizer(model.parameters()), []
    for _ in range(STEPS):
        opt.zero_grad()
        loss = loss_of(model(x), y)
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return {"model": lua, "loss": lua_loss, "optimizer": kind, "options": options, "inputs": [x_spec, y_spec],
            "losses": losses, "parameters": list(model.parameters())}


def main():
    print("-- tests/golden/training.lua - written by tests/golden/training.py with PyTorch "
          + torch.__version__.split("+")[0] + "; not edited.\n-- luacheck: no max line length\n\nreturn {")
    for model_case in [LSTM, BLOCK]:
        for optimizer_case in [ADAMW, SGD]:
            print("  {")
            for key, value in train(model_case, optimizer_case).items():
                print(f"    {key} = {text(value)},")
            print("  },")
    print("}")


if __name__ == "__main__":
    main()
