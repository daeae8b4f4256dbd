"""tests/golden/norms.py - writes norms.lua: what PyTorch's norms compute, and how a ResNet block
trains.

Run by hand (python tests/golden/norms.py > tests/golden/norms.lua); the tests read its output only.
Inputs are functions of the position, so that Lua makes the same without reading them.
"""
import math
import textwrap
import torch
from torch import nn

torch.set_num_threads(2)


def wave(shape, seed, scale=1.0, shift=0.0):
    n = math.prod(shape)
    i = torch.arange(n, dtype=torch.float64)
    return (torch.sin(i * 12.9898 + seed * 78.233) * scale + shift).reshape(shape).float()


def put(text):
    print(textwrap.fill(text, 98, initial_indent="  ", subsequent_indent="    "))


def lua(value):
    if isinstance(value, torch.Tensor):
        return "{ " + ", ".join("%.9g" % v for v in value.detach().double().flatten().tolist()) + " }"
    return "%.9g" % value


def show(fields):
    return "{ " + ", ".join(f"{key} = {value if isinstance(value, str) else lua(value)}"
                            for key, value in fields.items()) + " }"


def fill(module):
    for k, p in enumerate(module.parameters()):
        p.data.copy_(wave(p.shape, 7 + k, 0.5, 1.0 if p.dim() == 1 and k % 2 == 0 else 0.0))


def case(name, make, shape):
    layer = make()
    fill(layer)
    out = {"name": f'"{name}"'}
    for step in range(2):  # running statistics of two batches
        x = wave(shape, 1 + step, 2.0, 3.0).requires_grad_()
        y = layer(x)
    y.backward(wave(y.shape, 5))
    out["y"], out["dx"] = y, x.grad
    for key, p in layer.named_parameters():
        out["d" + key] = p.grad
    for key, b in layer.named_buffers():
        out[key] = b
    out["evaluated"] = layer.eval()(wave(shape, 3, 2.0, 3.0))
    put(show(out) + ",")


class Block(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(a, b, 3, 2, 1, bias=False), nn.BatchNorm2d(b)
        self.conv2, self.bn2 = nn.Conv2d(b, b, 3, 1, 1, bias=False), nn.BatchNorm2d(b)
        self.down = nn.Sequential(nn.Conv2d(a, b, 1, 2, bias=False), nn.BatchNorm2d(b))

    def forward(self, x):
        y = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))
        return (y + self.down(x)).relu()


def resnet():
    model = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), Block(4, 6), nn.AdaptiveAvgPool2d(1),
                          nn.Flatten(), nn.Linear(6, 3))
    for k, p in enumerate(model.parameters()):
        fan = p[0].numel() if p.dim() > 1 else 4
        p.data.copy_(wave(p.shape, 20 + k, 1 / math.sqrt(fan)))
    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.weight.data.fill_(1.0)
            m.bias.data.fill_(0.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for step in range(20):
        x, ids = wave((6, 3, 8, 8), 40 + step), torch.tensor([0, 1, 2, 2, 1, 0])
        loss = nn.functional.cross_entropy(model(x), ids)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    put("resnet = { losses = " + lua(torch.tensor(losses, dtype=torch.float64)) + ",")
    for name, value in model.state_dict().items():
        put(f'["{name}"] = {lua(value.flatten()[:12].double())},')
    print("  },")


print("-- tests/golden/norms.lua - written by norms.py with PyTorch %s." % torch.__version__)
print("return {")
case("BatchNorm1d", lambda: nn.BatchNorm1d(5), (7, 5))
case("BatchNorm1d sequence", lambda: nn.BatchNorm1d(3, momentum=0.3), (2, 3, 7))
case("BatchNorm2d", lambda: nn.BatchNorm2d(3), (2, 3, 4, 5))
case("BatchNorm2d cumulative", lambda: nn.BatchNorm2d(3, momentum=None), (2, 3, 3, 3))
case("BatchNorm2d plain",
     lambda: nn.BatchNorm2d(3, affine=False, track_running_stats=False), (2, 3, 3, 3))
case("InstanceNorm2d", lambda: nn.InstanceNorm2d(3), (2, 3, 3, 4))
case("InstanceNorm2d tracked",
     lambda: nn.InstanceNorm2d(3, affine=True, track_running_stats=True), (2, 3, 3, 3))
case("GroupNorm", lambda: nn.GroupNorm(2, 4), (2, 4, 3, 3))
case("GroupNorm rows", lambda: nn.GroupNorm(2, 6), (4, 6))
case("RMSNorm", lambda: nn.RMSNorm(7, eps=1e-6), (3, 7))
resnet()
print("}")
