#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small network on three spirals with PyTorch: an ordinary script of a user, with an ordinary checkpoint.

    python3 train.py --steps 300 --checkpoint spiral.pt

Runs where PyTorch says there is a GPU on it, else on the CPU. With WORLD_SIZE above 1 (set for every worker of a job,
with RANK, MASTER_ADDR and MASTER_PORT) it trains data-parallel with DistributedDataParallel: nccl on GPUs, gloo
elsewhere. SIGUSR1 saves a checkpoint and goes on; SIGTERM saves one and ends with 143, all workers at the same step.
Started again with the same options it goes on from its checkpoint.
"""

import argparse
import math
import os
import signal
import sys
import time

# Before torch is imported: several trainings share the machine, and its name may not resolve to a usable address.
os.environ.setdefault("OMP_NUM_THREADS", "1")
if os.environ.get("MASTER_ADDR", "127.0.0.1") in ("127.0.0.1", "localhost", "::1"):
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402

CLASSES = 3
TURN = 6.0
NOISE = 0.2
STOP, SAVE = 1, 2

asked = {"stop": False, "save": False}


def on_signal(number, _frame):
    asked["stop" if number == signal.SIGTERM else "save"] = True


def spirals(count, seed):
    """Points on three arms that turn outwards, with noise, and the arm of each."""
    generator = torch.Generator().manual_seed(seed)
    label = torch.arange(count) % CLASSES
    out = 0.1 + 0.9 * torch.rand(count, generator=generator)
    angle = 2 * math.pi * label / CLASSES + TURN * out + NOISE * torch.randn(count, generator=generator)
    return torch.stack((out * torch.cos(angle), out * torch.sin(angle)), dim=1), label


def network(hidden):
    return nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(),
                         nn.Linear(hidden, CLASSES))


def save(path, step, model, optimizer, seed):
    """There is always one whole checkpoint: written beside, synced, renamed."""
    with open(path + ".new", "wb") as f:
        torch.save({"step": step, "seed": seed, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, f)
        f.flush()
        os.fsync(f.fileno())
    os.rename(path + ".new", path)
    print("saved step %d to %s" % (step, path), flush=True)


def load(path, model, optimizer, seed):
    """The step to go on from; 0 without a checkpoint."""
    if path is None or not os.path.exists(path):
        return 0
    state = torch.load(path, map_location="cpu")
    if state["seed"] != seed:
        raise SystemExit("train.py: %s is of seed %d, not %d" % (path, state["seed"], seed))
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    print("going on from step %d" % state["step"], flush=True)
    return state["step"]


def agree(flags, world):
    """The union of what the workers were asked for: looked at once in a step, so that all stop at the same one."""
    if world == 1:
        return flags
    both = torch.tensor([flags & STOP, flags & SAVE], dtype=torch.float32)
    if dist.get_backend() == "nccl":
        both = both.cuda()
    dist.all_reduce(both, op=dist.ReduceOp.MAX)
    return int(both[0]) | int(both[1])


def one_step(step, args, points, labels, model, optimizer, place):
    """The mean loss of this worker's part of the batch; the batch of a step depends on the seed alone."""
    rank, world, device = place
    generator = torch.Generator().manual_seed(args.seed * 1000003 + step)
    batch = torch.randint(len(points), (args.batch,), generator=generator)[rank::world]
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(points[batch].to(device)), labels[batch].to(device))
    loss.backward()
    optimizer.step()
    return loss


def train(args, rank, world):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(args.seed)
    points, labels = spirals(args.points, args.seed)
    plain = network(args.hidden).to(device)
    optimizer = torch.optim.Adam(plain.parameters(), lr=args.rate)
    step = load(args.checkpoint, plain, optimizer, args.seed)
    model = nn.parallel.DistributedDataParallel(plain) if world > 1 else plain
    print("%d parameters, %d points, batch %d, seed %d, rank %d of %d, on %s" % (
        sum(p.numel() for p in plain.parameters()), args.points, args.batch, args.seed, rank, world, device), flush=True)
    while step < args.steps:
        began = time.monotonic()
        flags = agree(STOP * asked["stop"] | SAVE * asked["save"], world)
        asked["save"] = False
        if flags and args.checkpoint and rank == 0:
            save(args.checkpoint, step, plain, optimizer, args.seed)
        if flags & STOP:
            print("stopped after step %d" % step, flush=True)
            return 143
        loss = one_step(step, args, points, labels, model, optimizer, (rank, world, device))
        step += 1
        if step % args.print == 0:
            print("step %d loss %.6f" % (step, loss.item()), flush=True)
        time.sleep(max(0.0, args.step_ms / 1000 - (time.monotonic() - began)))
    with torch.no_grad():
        out = plain(points.to(device)).cpu()
    loss = nn.functional.cross_entropy(out, labels).item()
    if not math.isfinite(loss):
        raise SystemExit("train.py: the loss is not a number any more; try a smaller --rate")
    if args.checkpoint and rank == 0:
        save(args.checkpoint, step, plain, optimizer, args.seed)
    right = (out.argmax(dim=1) == labels).float().mean().item()
    print("done: steps %d, loss %.6f, accuracy %.1f %%" % (step, loss, 100 * right), flush=True)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    for name, default, text in (("steps", 300, "steps to train"), ("hidden", 64, "units in each hidden layer"),
                                ("points", 1200, "points of the data set"),
                                ("batch", 256, "points of a step, over all workers"), ("seed", 1, "of everything"),
                                ("print", 50, "steps between two lines of output"),
                                ("step-ms", 0, "a step takes at least this many milliseconds")):
        parser.add_argument("--" + name, type=int, default=default, help="%s (%d)" % (text, default))
    parser.add_argument("--rate", type=float, default=0.01, help="learning rate (0.01)")
    parser.add_argument("--checkpoint", help="go on from this file; save to it on SIGUSR1, SIGTERM and at the end")
    args = parser.parse_args()
    world = int(os.environ.get("WORLD_SIZE", "1"))
    rank = int(os.environ.get("RANK", "0"))
    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGUSR1, on_signal)
    torch.set_num_threads(1)
    if world > 1:
        # A worker sees only the cards it was given, so that its first one is always number 0.
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    return train(args, rank, world)


if __name__ == "__main__":
    sys.exit(main())
