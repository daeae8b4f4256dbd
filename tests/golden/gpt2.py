"""tests/golden/gpt2.py - writes tests/golden/gpt2/ (a tiny model as transformers saves it) and
tests/golden/gpt2.lua: what transformers' GPT2LMHeadModel computes with it, for
tests/spec/models/gpt2_spec.lua.

    pip install transformers
    python tests/golden/gpt2.py

Of a long tensor at most KEPT elements are written, evenly spaced; logits are whole.
"""
import os
import textwrap

import torch
from transformers import GPT2Config, GPT2LMHeadModel

KEPT = 8
HERE = os.path.dirname(os.path.abspath(__file__))
torch.set_num_threads(1)


def text(tensor, kept=KEPT):
    flat = tensor.detach().to(torch.float64).flatten()
    step = max(1, flat.numel() // kept) if kept else 1
    return "{ " + ", ".join("%.9g" % v for v in flat[::step].tolist()) + " }"


def loss_of(model, ids, targets):
    logits = model(ids).logits
    return logits, torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def main():
    torch.manual_seed(7)
    config = GPT2Config(vocab_size=61, n_positions=12, n_embd=20, n_layer=2, n_head=2,
                        bos_token_id=60, eos_token_id=60, resid_pdrop=0.0, embd_pdrop=0.0,
                        attn_pdrop=0.0)
    config._attn_implementation = "eager"
    model = GPT2LMHeadModel(config).eval()
    with torch.no_grad():  # biases are not 0, norms not 1, and weights large enough to matter
        for p in model.parameters():
            p.add_(torch.randn_like(p) * 0.15)
    model.save_pretrained(os.path.join(HERE, "gpt2"))
    extra = os.path.join(HERE, "gpt2", "generation_config.json")
    if os.path.exists(extra):
        os.remove(extra)
    ids = torch.tensor([[(7 * b + 11 * t * t + 3 * t) % 61 for t in range(10)] for b in range(4)])
    targets = torch.tensor([[(5 * b + 13 * t + 1) % 61 for t in range(10)] for b in range(4)])

    logits, loss = loss_of(model, ids, targets)
    loss.backward()
    out = ["-- tests/golden/gpt2.lua - written by gpt2.py; do not edit.", "return {"]
    out.append("  ids = { " + ", ".join(str(v) for v in ids.flatten().tolist()) + " },")
    out.append("  targets = { " + ", ".join(str(v) for v in targets.flatten().tolist()) + " },")
    out.append("  logits = " + text(logits[:1], 0) + ",")
    out.append("  loss = %.9g," % loss.item())
    out.append("  gradients = {")
    for name, p in model.named_parameters():
        out.append('    ["%s"] = { norm = %.9g, values = %s },'
                   % (name.replace("transformer.", ""), p.grad.norm().item(), text(p.grad)))
    out.append("  },")

    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        _, loss = loss_of(model, ids, targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    out.append("  losses = { " + ", ".join("%.9g" % v for v in losses) + " },")
    out.append("  trained = {")
    for name, p in model.named_parameters():
        out.append('    ["%s"] = %s,' % (name.replace("transformer.", ""), text(p)))
    out.append("  },")
    out.append("}")
    with open(os.path.join(HERE, "gpt2.lua"), "w") as file:
        file.write("\n".join(textwrap.fill(line, 112, subsequent_indent="    ",
                                           initial_indent=line[:len(line) - len(line.lstrip())],
                                           break_long_words=False, break_on_hyphens=False)
                             for line in out) + "\n")


main()
