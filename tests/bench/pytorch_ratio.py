#!/usr/bin/env python3
"""Steps of Assay beside steps of PyTorch on the same processor, measured in turns in one run.

    pytorch_ratio.py [--quick] [--only REGEX] [--threads 1,2] [--compiled none|quick|all]

For each model, size and batch one process of Assay (step_probe, backend onednn) and one of PyTorch
(and one more with torch.compile) hold the model at the same time and take turns, so that what else
the machine does hits both. Of each the least time over all its steps counts. Both are float32; both
copy the input in and read the loss back. PyTorch's tensors are channels last, its optimizers fused
(SGD for CosmoFlow, AdamW for DeepCAM), its allocator told to keep what is freed. With several
--threads each side gets its best.

Prints tables in Markdown. `ratio`: PyTorch's best time over Assay's. `of floor`: the multiply-adds
(counted twice) over the machine's peak, over Assay's time. MiB: the peak resident memory.

Needs torch (any CPU build), numpy; for the compiled side g++. Build first:
cmake --preset dev && cmake --build --preset dev --target step_probe
"""

import argparse
import ctypes
import dataclasses
import json
import math
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

import torch  # noqa: E402

import cosmoflow_torch  # noqa: E402
import deepcam_torch  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
# Multiply-adds of one training sample, counted twice, and the forward pass's part of them.
COSMOFLOW_FLOPS, COSMOFLOW_FORWARD = 192.09e9 / 128**3, 0.36  # per voxel
DEEPCAM_FLOPS, DEEPCAM_FORWARD = 1963.97e9 / (768 * 1152), 1 / 3  # per pixel
TURN_S = 0.2  # one side's steps before the other's turn


@dataclasses.dataclass(frozen=True)
class Case:
    model: str
    extents: tuple
    batch: int
    mode: str

    @property
    def name(self):
        return f"{self.mode}/{self.model}/{self.size}/{self.batch}"

    @property
    def size(self):
        return "x".join(map(str, self.extents))

    def flops(self):
        if self.model == "cosmoflow":
            whole, forward = COSMOFLOW_FLOPS * self.extents[0]**3, COSMOFLOW_FORWARD
        else:
            whole, forward = DEEPCAM_FLOPS * math.prod(self.extents), DEEPCAM_FORWARD
        return self.batch * whole * (1 if self.mode == "train" else forward)


def cases(is_quick):
    sizes = [("cosmoflow", (32,), (1, 4)), ("cosmoflow", (64,), (1, 4)),
             ("cosmoflow", (128,), (1,)),
             ("deepcam", (96, 144), (1, 4)), ("deepcam", (192, 288), (1,))]
    if not is_quick:
        sizes = [(model, extents, (1, 2, 4, 8)) for model, extents, _ in sizes]
        sizes.append(("deepcam", (768, 1152), (1,)))
    return [Case(model, extents, batch, mode)
            for model, extents, batches in sizes for batch in batches for mode in ("train", "eval")]


def cosmoflow_step(case, wrap):
    edge = case.extents[0]
    model = cosmoflow_torch.Cosmoflow(edge)
    counts = torch.randint(0, 8, (case.batch, edge, edge, edge, 4), dtype=torch.int16)
    targets = torch.rand(case.batch, 4) * 2 - 1
    forward = wrap(model)
    if case.mode == "train":
        optimizer = cosmoflow_torch.make_optimizer(model, 1e-4)
        return lambda: cosmoflow_torch.train_step(forward, optimizer, (counts, targets))
    model.eval()

    @torch.inference_mode()
    def evaluate():
        error = forward(counts) - targets
        return error.abs().sum().item(), error.square().mean().item()
    return evaluate


def deepcam_step(case, wrap):
    model = deepcam_torch.Deepcam(deepcam_torch.QuickInitial())
    maps = torch.rand(case.batch, *case.extents, 16)
    labels = torch.randint(0, 3, (case.batch, *case.extents))
    forward = wrap(model.forward)
    if case.mode == "train":
        optimizer = torch.optim.AdamW(model.params, lr=1e-4, eps=1e-6, weight_decay=0.01,
                                      fused=True)
        return lambda: deepcam_torch.train_step(forward, optimizer, model.params, (maps, labels))
    model.training = False

    @torch.inference_mode()
    def evaluate():
        logits = forward(maps)
        loss = deepcam_torch.loss_of(logits, labels).item()
        return deepcam_torch.mean_iou(logits, labels), loss
    return evaluate


def keep_freed_memory():
    """Else glibc hands large tensors back to the system, and every step pays for their pages."""
    trim_threshold, mmap_max = -1, -4  # malloc.h
    libc = ctypes.CDLL(None)
    libc.mallopt(mmap_max, 0)
    libc.mallopt(trim_threshold, 2**31 - 1)


def serve_torch(pipe, case, threads, is_compiled, keeps_memory):
    """What the forked process does: answers numbers of steps with their times in milliseconds."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: ends with its parent
    if keeps_memory:
        keep_freed_memory()
    torch.set_num_threads(threads)
    wrap = (lambda f: torch.compile(f, dynamic=False)) if is_compiled else (lambda f: f)
    step = (cosmoflow_step if case.model == "cosmoflow" else deepcam_step)(case, wrap)
    while (count := pipe.recv()) is not None:
        times = []
        for _ in range(count):
            begin = time.perf_counter()
            step()
            times.append(1e3 * (time.perf_counter() - begin))
        pipe.send(times)


class TorchSide:
    def __init__(self, case, threads, is_compiled, keeps_memory):
        # Forked, so that importing torch is paid once; this process computes nothing itself.
        context = multiprocessing.get_context("fork")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=serve_torch, daemon=True,
            args=(theirs, case, threads, is_compiled, keeps_memory))
        self._process.start()
        theirs.close()
        self.pid = self._process.pid

    def steps(self, count):
        self._pipe.send(count)
        return self._pipe.recv()

    def close(self):
        try:
            self._pipe.send(None)
        except OSError:
            pass
        self._process.join()


class AssaySide:
    def __init__(self, case, threads, probe, backend):
        command = [probe, backend, case.mode, case.batch, case.model, *case.extents]
        self._process = subprocess.Popen([str(word) for word in command], text=True,
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         env={**os.environ, "OMP_NUM_THREADS": str(threads)})
        self.pid = self._process.pid
        self._answer()

    def _answer(self):
        line = self._process.stdout.readline()
        if not line:
            raise EOFError("step_probe ended")
        return line

    def steps(self, count):
        self._process.stdin.write(f"{count}\n")
        self._process.stdin.flush()
        return [float(word) for word in self._answer().split()]

    def close(self):
        self._process.stdin.close()
        self._process.wait()


def peak_mib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


def take_turns(sides, seconds):
    """Least milliseconds and peak MiB of each side. `sides`: name -> a side that stands."""
    best, typical = {}, {}
    for name, side in sides.items():
        side.steps(1)  # whatever is done once
        best[name] = typical[name] = side.steps(1)[0]
    begin, rounds = time.monotonic(), 0
    while rounds < 2 or time.monotonic() - begin < seconds:
        for name, side in sides.items():
            times = side.steps(max(1, int(1e3 * TURN_S / typical[name])))
            typical[name] = sorted(times)[len(times) // 2]
            best[name] = min(best[name], *times)
        rounds += 1
    return {name: {"ms": best[name], "mib": peak_mib(side.pid)} for name, side in sides.items()}


def measure(case, threads, is_compiled, arguments):
    makers = {"torch": lambda: TorchSide(case, threads, False, not arguments.plain_allocator)}
    if is_compiled:
        makers["compiled"] = lambda: TorchSide(case, threads, True, not arguments.plain_allocator)
    # Last: a process forked after it would hold its standard input open.
    makers["assay"] = lambda: AssaySide(case, threads, arguments.probe, arguments.backend)
    sides = {}
    try:
        for name, make in makers.items():
            sides[name] = make()
        return take_turns(sides, arguments.seconds)
    finally:
        for side in sides.values():
            side.close()


def best_of(measurements):
    """Each side's fastest number of threads. `measurements`: threads -> side -> numbers."""
    best = {}
    for threads, sides in measurements.items():
        for name, numbers in sides.items():
            if name not in best or numbers["ms"] < best[name]["ms"]:
                best[name] = {**numbers, "threads": threads}
    return best


def measure_peak(pipe, threads):
    torch.set_num_threads(threads)
    a, b = torch.rand(2048, 2048), torch.rand(2048, 2048)
    best = math.inf
    for _ in range(20):
        begin = time.perf_counter()
        a @ b
        best = min(best, time.perf_counter() - begin)
    pipe.send(2 * 2048**3 / best)


def machine_peak(threads):
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=measure_peak, args=(theirs, threads))
    process.start()
    peak = ours.recv()
    process.join()
    return peak


def row(case, sides, peak):
    ours, eager, compiled = (sides.get(name) for name in ("assay", "torch", "compiled"))
    fastest = min(side["ms"] for side in (eager, compiled) if side)
    floor_ms = 1e3 * case.flops() / peak
    rate = 1e3 * case.batch
    cells = [case.size, case.batch, f"{ours['ms']:,.1f}", f"{rate / ours['ms']:,.1f}",
             f"{ours['mib']:,.0f}", f"{eager['ms']:,.1f}", f"{rate / eager['ms']:,.1f}",
             f"{eager['mib']:,.0f}", f"{compiled['ms']:,.1f}" if compiled else "",
             f"**{fastest / ours['ms']:.2f}**", f"{floor_ms:,.1f}", f"{floor_ms / ours['ms']:.2f}"]
    return "| " + " | ".join(map(str, cells)) + " |"


def print_tables(results, peak):
    header = ["size", "batch", "Assay ms", "samples/s", "MiB", "PyTorch ms", "samples/s", "MiB",
              "compiled ms", "ratio", "floor ms", "of floor"]
    for model in ("cosmoflow", "deepcam"):
        for mode, title in (("train", "training"), ("eval", "evaluation")):
            chosen = [(c, s) for c, s in results if (c.model, c.mode) == (model, mode)]
            if not chosen:
                continue
            print(f"\n{model}, {title}\n\n| {' | '.join(header)} |\n{'|---' * len(header)}|")
            for case, sides in chosen:
                print(row(case, sides, peak))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a subset of minutes")
    parser.add_argument("--only", default="",
                        help="cases whose name matches, such as train/cosmoflow/64/2")
    parser.add_argument("--threads", default=str(len(os.sched_getaffinity(0))),
                        help="numbers of threads to try, default: one for each core")
    parser.add_argument("--compiled", choices=("none", "quick", "all"), default="all",
                        help="which cases also run with torch.compile")
    parser.add_argument("--plain-allocator", action="store_true",
                        help="leave PyTorch's allocator (glibc) as it is installed")
    parser.add_argument("--seconds", type=float, default=4, help="turns of one case, default 4")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no case after these")
    parser.add_argument("--peak-gflops", type=float,
                        help="of the machine; default: the best float32 matrix product here")
    parser.add_argument("--probe", default=ROOT / "build/dev/bin/step_probe")
    parser.add_argument("--backend", default="onednn")
    parser.add_argument("--json", help="file for the raw numbers")
    return parser.parse_args()


def run_all(arguments):
    threads = [int(word) for word in arguments.threads.split(",")]
    wanted = [case for case in cases(arguments.quick) if re.search(arguments.only, case.name)]
    compiled = {"none": [], "quick": cases(True), "all": wanted}[arguments.compiled]
    begin, results = time.monotonic(), []
    for case in wanted:
        if time.monotonic() - begin > 60 * arguments.minutes:
            print(f"left out: {case.name}", file=sys.stderr)
            continue
        try:
            sides = best_of({n: measure(case, n, case in compiled, arguments) for n in threads})
        except (EOFError, OSError) as error:
            print(f"{case.name}: a side failed: {error!r}", file=sys.stderr)
            continue
        results.append((case, sides))
        print(f"{time.monotonic() - begin:6.1f} s {case.name}",
              {name: f"{s['ms']:.1f} ms, {s['threads']} threads" for name, s in sides.items()},
              file=sys.stderr, flush=True)
    return results


def main():
    arguments = parse_arguments()
    threads = max(int(word) for word in arguments.threads.split(","))
    load = os.getloadavg()[0]
    peak = 1e9 * arguments.peak_gflops if arguments.peak_gflops else machine_peak(threads)
    results = run_all(arguments)
    print(f"PyTorch {torch.__version__}, threads {arguments.threads}, peak {peak / 1e9:,.0f}"
          f" GFLOP/s, load average {load:.1f} before, {os.getloadavg()[0]:.1f} at the end")
    print_tables(results, peak)
    if arguments.json:
        rows = [{**dataclasses.asdict(case), "sides": sides} for case, sides in results]
        Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
