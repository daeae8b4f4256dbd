"""tests/golden/options.py - writes tests/golden/options.lua: options of layers and losses, and the
smaller layers, for tests/spec/nn/golden_spec.lua. The cases are as those of layers.py.

    python tests/golden/options.py > tests/golden/options.lua
"""
import layers
import torch
from torch import nn
from layers import case

WEIGHT = torch.tensor([0.5, 1.0, 2.0, 0.0, 3.0, 0.25, 1.5])
LIST = "{0.5, 1, 2, 0, 3, 0.25, 1.5}"


def weighted():
    rows, ids = (5, 7), ("ids", (5,), 7)
    for lua, options in [
            ("", {}), (", ignore_index = 3", {"ignore_index": 3}), (', reduction = "sum"', {"reduction": "sum"}),
            (', reduction = "none"', {"reduction": "none"})]:
        case(f"nn.NLLLoss {{weight = {LIST}{lua}}}", nn.NLLLoss(WEIGHT, **options), [rows, ids])
        case(f"nn.CrossEntropyLoss {{weight = {LIST}{lua}}}", nn.CrossEntropyLoss(WEIGHT, **options), [rows, ids])
        case(f"nn.CrossEntropyLoss {{weight = {LIST}, label_smoothing = 0.2{lua}}}",
             nn.CrossEntropyLoss(WEIGHT, label_smoothing=0.2, **options), [rows, ids])
    case(f"nn.BCEWithLogitsLoss {{pos_weight = {LIST}}}", nn.BCEWithLogitsLoss(pos_weight=WEIGHT), [rows, ("share", rows)])
    case(f"nn.BCEWithLogitsLoss {{weight = {LIST}, pos_weight = 2}}",
         nn.BCEWithLogitsLoss(WEIGHT, pos_weight=torch.tensor(2.0)), [rows, ("share", rows)])
    case(f'nn.BCELoss {{weight = {LIST}, reduction = "none"}}', nn.BCELoss(WEIGHT, reduction="none"),
         [("positive", rows), ("share", rows)])


def make_cases():
    weighted()


layers.make_cases = make_cases
layers.main("options")
