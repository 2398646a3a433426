#!/usr/bin/env python3
"""CosmoFlow in plain PyTorch, trained like the round cosmoflow-mini: see convergence.py.

    cosmoflow_torch.py DATASET [--seeds 5] [--epochs 8] [--threads 1]

DATASET: ~/.cache/assay/datasets/cosmo32. Prints each epoch's mean absolute error on the validation
split, as round_seeds.py does for Assay. Hyperparameters are read from deploy/quickstart; initial
weights and the order of samples are those that Assay draws for the same seed. Needs torch, numpy.
"""

import gzip
import os
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

import assay_streams
import torch_training
from own_rounds import COSMOFLOW

RECORD_HEADER = 12  # length and its checksum


class Cosmoflow(torch.nn.Module):
    """The network of worker/models/cosmoflow.h with kernel 3; input (B, D, H, W, 4) int16."""

    def __init__(self, edge=128, filters=32, dropout=0.5):
        super().__init__()
        widths = [4] + [filters << i for i in range(5)]
        self.convs = torch.nn.ModuleList(torch.nn.Conv3d(a, b, 3, padding=1)
                                         for a, b in zip(widths, widths[1:]))
        units = [(edge // 32) ** 3 * widths[-1], 128, 64, 4]
        self.dense = torch.nn.ModuleList(torch.nn.Linear(a, b) for a, b in zip(units, units[1:]))
        self.dropout = torch.nn.Dropout(dropout)
        self.to(memory_format=torch.channels_last_3d)

    def forward(self, counts):
        x = torch.log1p(counts.float()).permute(0, 4, 1, 2, 3)  # channels last in memory
        for conv in self.convs:
            x = F.max_pool3d(F.leaky_relu(conv(x), 0.3), 2)
        x = x.permute(0, 2, 3, 4, 1).flatten(1)
        for dense in self.dense[:2]:
            x = self.dropout(F.leaky_relu(dense(x), 0.3))
        return 1.2 * torch.tanh(self.dense[2](x))

    @torch.no_grad()
    def initialise(self, seed):
        """Glorot's limits and zero biases, from Assay's stream."""
        initial = assay_streams.Initial(seed)
        for conv in self.convs:
            out, into = conv.weight.shape[:2]
            limit = (6 / (27 * (out + into))) ** 0.5
            kernel = initial.uniform((3, 3, 3, into, out), limit)
            conv.weight.copy_(torch.from_numpy(kernel).permute(4, 3, 0, 1, 2))
            conv.bias.copy_(torch.from_numpy(initial.constant((out,), 0)))
        for dense in self.dense:
            out, into = dense.weight.shape
            kernel = initial.uniform((into, out), (6 / (out + into)) ** 0.5)
            dense.weight.copy_(torch.from_numpy(kernel).T)
            dense.bias.copy_(torch.from_numpy(initial.constant((out,), 0)))
        return self


def make_optimizer(model, rate):
    return torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9, fused=True)


def set_rate(optimizer, rate):
    """Keras' momentum holds the learning rate, PyTorch's does not: rescaling makes them equal."""
    group = optimizer.param_groups[0]
    for state in optimizer.state.values():
        state["momentum_buffer"].mul_(group["lr"] / rate)
    group["lr"] = rate


def train_step(model, optimizer, batch):
    """One step; `batch`: counts and targets. Returns the loss as a number."""
    optimizer.zero_grad(set_to_none=True)
    loss = F.mse_loss(model(batch[0]), batch[1])
    loss.backward()
    optimizer.step()
    return loss.item()


def rate_of(settings, epoch):
    """worker/engine/lr_schedule.h, of a 0-based epoch."""
    peak = settings["opt_base_learning_rate"]
    warmup = settings["opt_learning_rate_warmup_epochs"]
    if epoch < warmup:
        base = peak / settings["opt_learning_rate_warmup_factor"]
        return base + epoch * (peak - base) / warmup
    decays = zip(settings["opt_learning_rate_decay_boundary_epochs"],
                 settings["opt_learning_rate_decay_factor"])
    return peak * max(((b, f) for b, f in decays if b < epoch), default=(0, 1.0))[1]


def varint(message, at):
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(message):
    """(number, bytes) of the length-delimited and 32-bit fields of a protocol buffer."""
    at = 0
    while at < len(message):
        tag, at = varint(message, at)
        size = 4
        if tag & 7 == 2:
            size, at = varint(message, at)
        elif tag & 7 != 5:
            raise ValueError(f"field of wire type {tag & 7}")
        yield tag >> 3, message[at:at + size]
        at += size


def read_sample(path):
    """Counts (edge, edge, edge, 4) and targets (4) of a TFRecord file with one tf.train.Example."""
    stored = Path(path).read_bytes()
    if stored[:2] == b"\x1f\x8b":
        stored = gzip.decompress(stored)
    size = int.from_bytes(stored[:8], "little")
    example = memoryview(stored)[RECORD_HEADER:RECORD_HEADER + size]
    features = {}
    for _, feature_map in fields(example):
        for _, entry in fields(feature_map):
            key, feature = (value for _, value in sorted(fields(entry), key=lambda f: f[0]))
            values = [bytes(v) for _, part in fields(feature) for _, v in fields(part)]
            features[bytes(key).decode()] = b"".join(values)
    counts = np.frombuffer(features["x"], dtype="<i2")
    edge = round((len(counts) / 4) ** (1 / 3))
    return counts.reshape(edge, edge, edge, 4), np.frombuffer(features["y"], dtype="<f4")


def load(dataset, split):
    paths = sorted(Path(dataset, split).glob("*.tfrecord"), key=lambda p: os.fsencode(p.name))
    counts, targets = zip(*(read_sample(path) for path in paths))
    return torch.from_numpy(np.stack(counts)), torch.from_numpy(np.stack(targets))


@torch.inference_mode()
def evaluate(model, data, batch):
    model.eval()
    total = sum((model(x) - y).abs().double().sum().item()
                for x, y in zip(data[0].split(batch), data[1].split(batch)))
    model.train()
    return total / data[1].numel()


def train(data, seed, epochs):
    """Yields the validation error of each epoch. `data`: training and validation split."""
    settings = COSMOFLOW.hyperparameters()
    batch, (counts, targets) = settings["global_batch_size"], data[0]
    model = Cosmoflow(settings["cube_edge"], settings["base_filter_count"], settings["dropout"])
    optimizer = make_optimizer(model.initialise(seed), rate_of(settings, 0))
    for epoch in range(epochs):
        set_rate(optimizer, rate_of(settings, epoch))
        for chosen in torch.tensor(assay_streams.shuffled(seed, epoch, len(counts))).split(batch):
            train_step(model, optimizer, (counts[chosen], targets[chosen]))
        yield evaluate(model, data[1], batch)


if __name__ == "__main__":
    torch_training.main(__doc__, COSMOFLOW, load, train)
