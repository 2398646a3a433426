#!/usr/bin/env python3
"""DeepCAM in plain PyTorch, trained like the round deepcam-mini: the other side of convergence.py.

    deepcam_torch.py DATASET [--seeds 5] [--epochs 12] [--threads 1]

DATASET: that of docs/benchmarks/deepcam-mini.md. Prints each epoch's mean intersection over union
on the validation split, as round_seeds.py does for Assay. Hyperparameters are read from
deploy/quickstart; initial weights and the order of samples are those that Assay draws for the same
seed. Network and LAMB are those of the golden data (tests/golden/engine/make_golden.py). Needs
torch, numpy, and for training h5py.
"""

import math
import os
import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

import assay_streams
import torch_training
from own_rounds import DEEPCAM

sys.path.append(str(Path(__file__).resolve().parents[1] / "golden/engine"))
import make_golden as golden  # noqa: E402  (computes in float64)

torch.set_default_dtype(torch.float32)

TORCH_INIT = ("pyramid/mean", "pyramid/fuse", "low_level", "decoder/")  # KernelInit::kTorch
NORM_OPTIONS = {"momentum": 0.1, "eps": 1e-5}


class QuickInitial:
    """Weights of the right size in less time, for where they do not matter."""

    def uniform(self, shape, limit):
        return limit * (2 * torch.rand(shape).numpy() - 1)

    def normal(self, shape, deviation):
        return deviation * torch.randn(shape).numpy()

    def constant(self, shape, value):
        return np.full(shape, value, dtype=np.float32)


class Deepcam(golden.Net):
    """The golden network in float32 and channels last, with running statistics to evaluate by."""

    def __init__(self, initial, base=32, blocks=16):
        super().__init__(base, blocks)
        self.training = True
        self.running = {}
        self._initial = initial
        with torch.no_grad():  # creates the parameters; leaves the statistics as they begin
            self.forward(torch.zeros(1, 32, 32, 16))
        for mean, variance in self.running.values():
            mean.zero_()
            variance.fill_(1)

    def _draw(self, name, shape):
        if name.endswith(("/scale", "/weight")):
            return self._initial.constant(shape, 1)
        if name.endswith("/shift") or name.endswith("affine/bias"):
            return self._initial.constant(shape, 0)
        fan = math.prod(shape[:3])
        if name.startswith(TORCH_INIT):
            return self._initial.uniform(shape, 1 / math.sqrt(fan))
        return self._initial.normal(shape, math.sqrt(2 / fan))

    def param(self, name, shape, draw):
        if not self.created:
            values = self._draw(name, shape)
            tensor = torch.from_numpy(values)
            if len(shape) == 4:
                tensor = golden.kernel(values).contiguous(memory_format=torch.channels_last)
            self.params.append(tensor.requires_grad_())
            self.names.append(name)
        self.cursor += 1
        return self.params[self.cursor - 1]

    def norm(self, x, name, relu):
        channels = (x.shape[1],)
        scale = self.param(name + "/norm/scale", channels, None)
        shift = self.param(name + "/norm/shift", channels, None)
        if not self.created:
            self.running[name] = (torch.zeros(channels), torch.ones(channels))
        mean, variance = self.running[name]
        y = F.batch_norm(x, mean, variance, scale, shift, self.training, **NORM_OPTIONS)
        return F.relu(y) if relu else y

    def forward(self, maps):
        """`maps`: (B, H, W, 16), so that the permuted view is channels last."""
        return super().forward(maps.permute(0, 3, 1, 2))


CLASS_WEIGHTS = torch.tensor(golden.class_weights(), dtype=torch.float32)


def loss_of(logits, labels):
    """Mean over the pixels, not divided by the weights: the reference's."""
    return F.cross_entropy(logits, labels, CLASS_WEIGHTS, reduction="none").mean()


def train_step(forward, optimizer, parameters, batch):
    """One step; `batch`: maps and labels. Returns the loss as a number."""
    for parameter in parameters:
        parameter.grad = None
    loss = loss_of(forward(batch[0]), batch[1])
    loss.backward()
    optimizer.step()
    return loss.item()


def mean_iou(logits, labels):
    """Sum over the samples of the mean over three classes; a class that is nowhere counts 1."""
    total = 0.0
    for prediction, truth in zip(logits.argmax(1), labels):
        pairs = torch.bincount((3 * truth + prediction).flatten(), minlength=9).reshape(3, 3)
        both = pairs.diagonal()
        either = pairs.sum(0) + pairs.sum(1) - both
        total += torch.where(either > 0, both / either.clamp(min=1), 1.0).mean().item()
    return total


def load(dataset, split):
    import h5py
    with h5py.File(Path(dataset, "stats.h5")) as file:
        low, high = (file["climate"][key][:] for key in ("minval", "maxval"))
    maps, labels = [], []
    for path in sorted(Path(dataset, split).glob("*.h5"), key=lambda p: os.fsencode(p.name)):
        with h5py.File(path) as file:
            maps.append((file["climate"]["data"][:] - low) * (1 / (high - low)))
            labels.append(file["climate"]["labels_0"][:].astype(np.int64))
    return torch.from_numpy(np.stack(maps)), torch.from_numpy(np.stack(labels))


@torch.inference_mode()
def evaluate(model, data, batch):
    model.training = False
    total = sum(mean_iou(model.forward(x), y)
                for x, y in zip(data[0].split(batch), data[1].split(batch)))
    model.training = True
    return total / len(data[0])


def train(data, seed, epochs):
    """Yields the validation IoU of each epoch. `data`: training and validation split."""
    settings = DEEPCAM.hyperparameters()
    batch, (maps, labels) = settings["global_batch_size"], data[0]
    model = Deepcam(assay_streams.Initial(seed), settings["base_filter_count"],
                    settings["middle_block_count"])
    rate, period = settings["opt_lr"], settings["scheduler_t_max"]
    optimizer = golden.Lamb(model.params, rate, settings["opt_weight_decay"],
                            settings["opt_betas"], settings["opt_eps"])
    step = 0
    for epoch in range(epochs):
        order = torch.tensor(assay_streams.shuffled(seed, epoch, len(maps)))
        for chosen in order[:len(maps) - len(maps) % batch].split(batch):
            optimizer.param_groups[0]["lr"] = rate * (1 + math.cos(math.pi * step / period)) / 2
            train_step(model.forward, optimizer, model.params, (maps[chosen], labels[chosen]))
            step += 1
        yield evaluate(model, data[1], batch)


if __name__ == "__main__":
    torch_training.main(__doc__, DEEPCAM, load, train)
