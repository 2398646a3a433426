#!/usr/bin/env python3
"""Training steps of Assay beside steps of PyTorch on the same GPU, measured in turns.

    gpu_torch.py [--only REGEX] [--seconds 4] [--probe build/dev/bin/step_probe] [--json FILE]
    gpu_torch.py --ceilings

PyTorch has its strongest settings: bfloat16 by autocast, channels last, cuDNN's benchmark mode, a
fused optimizer, and the whole step captured in a CUDA graph; once with torch.compile and once
without, of which the faster counts. Both sides compute the same network on the same shapes, copy
the next batch from pinned memory while a step computes, and read the loss after each step. The
sides hold their models at the same time and take turns, so that clocks and heat are the same.

Prints a row for each case: the best step of each side in milliseconds, PyTorch's over Assay's, and
Assay's over the floor (docs/benchmarks/gpu.md). --ceilings prints what the GPU reaches in copies
and matrix products. --device cpu, without graphs, only shows that the script works.

Needs torch 2.6 or newer for CUDA, numpy, and tests/bench beside tests/gpu.
"""

import argparse
import dataclasses
import json
import multiprocessing
import re
import sys
import time
import traceback
from pathlib import Path

import torch
import torch.nn.functional as F

sys.path.append(str(Path(__file__).resolve().parents[1] / "bench"))
import cosmoflow_torch  # noqa: E402
import deepcam_torch  # noqa: E402
import pytorch_ratio  # noqa: E402

# Milliseconds a sample by multiplication in bfloat16 on an H100 or H200, at the full size.
FLOOR_MS = {"cosmoflow": 0.243, "deepcam": 2.49}
HEADER = ["model", "size", "batch", "Assay ms", "PyTorch ms", "compiled ms", "PyTorch / Assay",
          "floor ms", "Assay / floor"]


def cases():
    sizes = [("cosmoflow", (128,), (1, 8)), ("deepcam", (768, 1152), (1, 2, 4))]
    return [pytorch_ratio.Case(model, extents, batch, "train")
            for model, extents, batches in sizes for batch in batches]


def floor_ms(case):
    full = {"cosmoflow": 128**3, "deepcam": 768 * 1152}[case.model]
    elements = case.extents[0]**3 if case.model == "cosmoflow" else case.extents[0] * case.extents[1]
    return case.batch * FLOOR_MS[case.model] * elements / full


def cosmoflow(case, device, wrap):
    """Loss of a batch, parameters, optimizer, and a batch in host memory."""
    edge = case.extents[0]
    model = cosmoflow_torch.Cosmoflow(edge).to(device)
    forward = wrap(model)
    batch = (torch.randint(0, 8, (case.batch, edge, edge, edge, 4), dtype=torch.int16),
             torch.rand(case.batch, 4) * 2 - 1)
    options = {} if device == "cpu" else {"fused": True}
    parameters = list(model.parameters())
    optimizer = torch.optim.SGD(parameters, lr=1e-4, momentum=0.9, **options)
    return (lambda counts, targets: F.mse_loss(forward(counts).float(), targets), parameters,
            optimizer, batch)


def deepcam(case, device, wrap):
    """The same. Labels are copied as bytes, as Assay does."""
    model = deepcam_torch.Deepcam(deepcam_torch.QuickInitial())
    model.params = [p.detach().to(device).requires_grad_() for p in model.params]
    model.running = {name: tuple(moment.to(device) for moment in moments)
                     for name, moments in model.running.items()}
    deepcam_torch.CLASS_WEIGHTS = deepcam_torch.CLASS_WEIGHTS.to(device)
    forward = wrap(model.forward)
    batch = (torch.rand(case.batch, *case.extents, 16),
             torch.randint(0, 3, (case.batch, *case.extents), dtype=torch.uint8))
    options = {} if device == "cpu" else {"fused": True, "capturable": True}
    optimizer = torch.optim.AdamW(model.params, lr=1e-4, eps=1e-6, weight_decay=0.01, **options)
    return (lambda maps, labels: deepcam_torch.loss_of(forward(maps).float(), labels.long()),
            model.params, optimizer, batch)


class Training:
    """Steps of one model on a device."""

    def __init__(self, case, device, is_compiled):
        wrap = (lambda f: torch.compile(f, dynamic=False)) if is_compiled else (lambda f: f)
        make = cosmoflow if case.model == "cosmoflow" else deepcam
        self._loss_of, self._parameters, self._optimizer, host = make(case, device, wrap)
        self._device = device
        self._batch = tuple(tensor.to(device) for tensor in host)
        if device == "cpu":
            return
        self._host = tuple(tensor.pin_memory() for tensor in host)
        self._staged = tuple(torch.empty_like(tensor) for tensor in self._batch)
        self._copies, self._taken, self._arrived = (torch.cuda.Stream(), torch.cuda.Event(),
                                                    torch.cuda.Event())
        self._capture()
        self._taken.record()
        self._prefetch()

    def _train(self):
        for parameter in self._parameters:
            parameter.grad = None
        with torch.autocast(self._device, torch.bfloat16):
            loss = self._loss_of(*self._batch)
        loss.backward()
        self._optimizer.step()
        return loss.detach()

    def _capture(self):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):  # compiles, and lets cuDNN time its engines
                self._train()
        torch.cuda.current_stream().wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._loss = self._train()

    def _prefetch(self):
        with torch.cuda.stream(self._copies):
            self._copies.wait_event(self._taken)
            for staged, host in zip(self._staged, self._host):
                staged.copy_(host, non_blocking=True)
            self._arrived.record()

    def step(self):
        if self._device == "cpu":
            return self._train().item()
        torch.cuda.current_stream().wait_event(self._arrived)
        for tensor, staged in zip(self._batch, self._staged):
            tensor.copy_(staged)
        self._taken.record()
        self._graph.replay()
        self._prefetch()
        return self._loss.item()


def serve(pipe, case, device, is_compiled):
    """What the forked process does: says whether the model stands, then answers numbers of steps."""
    try:
        torch.backends.cudnn.benchmark = True
        torch.set_float32_matmul_precision("high")
        training = Training(case, device, is_compiled)
        pipe.send(None)
    except Exception:  # whatever torch.compile or a capture raises: it is the answer
        pipe.send(traceback.format_exc())
        return
    while (count := pipe.recv()) is not None:
        times = []
        for _ in range(count):
            begin = time.perf_counter()
            training.step()
            times.append(1e3 * (time.perf_counter() - begin))
        pipe.send(times)


class TorchSide:
    """Raises OSError with PyTorch's reason where its model cannot be made in time."""

    def __init__(self, case, device, is_compiled, limit_s):
        # Forked before anything here uses the GPU.
        context = multiprocessing.get_context("fork")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, case, device, is_compiled),
                                        daemon=True)
        self._process.start()
        theirs.close()
        self.pid = self._process.pid
        is_ready = self._pipe.poll(limit_s)
        error = self._pipe.recv() if is_ready else f"no model after {limit_s} s"
        if error:
            self._process.kill()
            raise OSError(error)

    def steps(self, count):
        self._pipe.send(count)
        return self._pipe.recv()

    def close(self):
        try:
            self._pipe.send(None)
        except OSError:
            pass
        self._process.join(5)
        self._process.kill()


def measure(case, arguments):
    """Each side's best step. A side that fails is left out, with its reason on stderr."""
    makers = {
        "torch": lambda: TorchSide(case, arguments.device, False, arguments.limit),
        "compiled": lambda: TorchSide(case, arguments.device, True, arguments.limit),
        # Last: a process forked after it would hold its standard input open.
        "assay": lambda: pytorch_ratio.AssaySide(case, arguments.threads, arguments.probe,
                                                 arguments.backend)}
    sides = {}
    try:
        for name, make in makers.items():
            try:
                sides[name] = make()
            except (EOFError, OSError) as error:
                print(f"{case.name}: {name} failed: {error}", file=sys.stderr, flush=True)
        return pytorch_ratio.take_turns(sides, arguments.seconds)
    finally:
        for side in sides.values():
            side.close()


def row(case, sides):
    ours, eager, compiled = (sides[name]["ms"] if name in sides else None
                             for name in ("assay", "torch", "compiled"))
    fastest = min((ms for ms in (eager, compiled) if ms), default=None)
    floor = floor_ms(case)
    cells = [case.model, case.size, case.batch, *(f"{ms:.3f}" if ms else "" for ms in
                                                  (ours, eager, compiled)),
             f"{fastest / ours:.2f}" if ours and fastest else "", f"{floor:.3f}",
             f"{ours / floor:.2f}" if ours else ""]
    return "| " + " | ".join(map(str, cells)) + " |"


def rate(work, unit, run):
    """Best of ten, in `unit` a second."""
    best = 0.0
    for _ in range(10):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run()
        end.record()
        end.synchronize()
        best = max(best, work / unit / (1e-3 * begin.elapsed_time(end)))
    return best


def print_ceilings():
    size, edge = 1 << 30, 8192
    host = torch.empty(size, dtype=torch.uint8, pin_memory=True)
    a, b = (torch.empty(size, dtype=torch.uint8, device="cuda") for _ in range(2))
    x, y = (torch.rand(edge, edge, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, cuDNN"
          f" {torch.backends.cudnn.version()}")
    print(f"copy from pinned memory {rate(size, 1e9, lambda: a.copy_(host, non_blocking=True)):.1f}"
          " GB/s")
    print(f"copy on the device {rate(2 * size, 1e9, lambda: b.copy_(a)):.0f} GB/s (read and written)")
    print(f"product of {edge} in bfloat16 {rate(2 * edge**3, 1e12, lambda: x @ y):.0f} TFLOP/s")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="",
                        help="cases whose name matches, such as train/cosmoflow/128/8")
    parser.add_argument("--seconds", type=float, default=4, help="turns of one case, default 4")
    parser.add_argument("--limit", type=float, default=200,
                        help="seconds in which PyTorch must have compiled a model")
    parser.add_argument("--threads", type=int, default=4, help="of Assay's host side")
    parser.add_argument("--probe", default=pytorch_ratio.ROOT / "build/dev/bin/step_probe")
    parser.add_argument("--backend", default="cuda-bf16")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--case", action="append", default=[], metavar="MODEL/SIZE/BATCH",
                        help="instead of the cases there are, such as deepcam/96x144/1")
    parser.add_argument("--json", help="file to which the raw numbers are added, a line each")
    parser.add_argument("--ceilings", action="store_true", help="of copies and products, no steps")
    return parser.parse_args()


def chosen(arguments):
    if not arguments.case:
        return [case for case in cases() if re.search(arguments.only, case.name)]
    return [pytorch_ratio.Case(model, tuple(map(int, size.split("x"))), int(batch), "train")
            for model, size, batch in (name.split("/") for name in arguments.case)]


def main():
    arguments = parse_arguments()
    if arguments.ceilings:
        print_ceilings()
        return
    print(f"| {' | '.join(HEADER)} |\n{'|---' * len(HEADER)}|", flush=True)
    for case in chosen(arguments):
        sides = measure(case, arguments)
        print(row(case, sides), flush=True)
        if arguments.json:
            with open(arguments.json, "a", encoding="utf-8") as file:
                file.write(json.dumps({**dataclasses.asdict(case), "sides": sides}) + "\n")


if __name__ == "__main__":
    main()
