"""The byte GPT of gpt.lua trained by PyTorch's DistributedDataParallel over gloo: one process per rank
with one thread, as torchrun's environment names them. Rank 0 prints tokens per second (the median of
the steps after three). Arguments: how many timed steps."""
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

LAYERS, WIDTH, HEADS, CONTEXT, BATCH, VOCABULARY = 6, 384, 6, 256, 8, 256


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.project = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        rows, length, _ = x.shape
        heads = [t.view(rows, length, HEADS, -1).transpose(1, 2) for t in self.qkv(self.norm1(x)).split(WIDTH, 2)]
        mixed = F.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.project(mixed.transpose(1, 2).reshape(rows, length, WIDTH))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        return self.head(self.norm(self.blocks(x)))


torch.set_num_threads(1)
torch.manual_seed(0)
dist.init_process_group("gloo")
model = nn.parallel.DistributedDataParallel(GPT(), gradient_as_bucket_view=True)
adam = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
ids = torch.randint(0, VOCABULARY, (BATCH // dist.get_world_size(), CONTEXT))
times = []
for step in range(int(sys.argv[1]) + 3):
    dist.barrier()
    begin = time.perf_counter()
    adam.zero_grad(set_to_none=True)
    F.cross_entropy(model(ids).view(-1, VOCABULARY), ids.view(-1)).backward()
    adam.step()
    dist.barrier()
    if step >= 3:
        times.append(time.perf_counter() - begin)
if os.environ["RANK"] == "0":
    print(f"ddp ranks={dist.get_world_size()} tok/s={BATCH * CONTEXT / statistics.median(times):.0f}")
dist.destroy_process_group()
