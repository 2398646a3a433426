"""A training program of one's own under Assay: CosmoFlow's targets by linear regression, in numpy.

It imports nothing of Assay. All that it is told comes from the variables of contract 1, all that it
says goes into the log that ASSAY_LOG names, by MLCommons' own library (pip install mlperf-logging
numpy). One process is one rank; each has its share of the samples, and the gradients are summed over
TCP. A linear model of each channel's mean is enough for datasets of mode "beacon"; real ones need a
real model in the place of Model.
"""

import gzip
import json
import os
import pathlib
import signal
import socket
import struct
import sys
import time

import numpy as np
from mlperf_logging import mllog


def variable(name, kind=str):
    return kind(os.environ["ASSAY_" + name])


class Gang:
    """All ranks of the run. Rank 0 listens at the address that Assay keeps for it."""

    def __init__(self):
        self.rank, self.size = variable("RANK", int), variable("WORLD_SIZE", int)
        address = (variable("MASTER_ADDR"), variable("MASTER_PORT", int))
        self.links = []
        if self.rank == 0:
            with socket.create_server(("", address[1]), backlog=self.size) as server:
                self.links = [server.accept()[0] for _ in range(self.size - 1)]
        else:
            self.links = [self.connect(address, time.monotonic() + 120)]

    @staticmethod
    def connect(address, deadline):
        while True:
            try:
                return socket.create_connection(address, timeout=600)
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def sum(self, values):
        """The element-wise sum of every rank's array, on every rank."""
        values = np.array(values, dtype=np.float64)
        if self.rank == 0:
            for link in self.links:
                values += self.take(link, values.shape)
        for link in self.links:
            link.sendall(values.tobytes())
        return values if self.rank == 0 else self.take(self.links[0], values.shape)

    @staticmethod
    def take(link, shape):
        size = 8 * int(np.prod(shape))
        data = link.recv(size, socket.MSG_WAITALL)
        if len(data) != size:
            sys.exit("another rank has gone")
        return np.frombuffer(data).reshape(shape)

    def wait(self):
        self.sum(np.zeros(1))


class Log:
    """The run's log: rank 0 writes it, the others write nothing."""

    def __init__(self, rank):
        self.logger = None
        if rank == 0:
            mllog.config(filename=variable("LOG"), default_stack_offset=2)
            self.logger = mllog.get_mllogger()
            handlers = self.logger.logger.handlers
            self.logger.logger.handlers = [h for h in handlers if hasattr(h, "baseFilename")]

    def write(self, how, key, value=None, **metadata):
        if self.logger is not None:
            getattr(self.logger, how)(key=key, value=value, metadata=metadata)

    def start(self, key, **metadata):
        self.write("start", key, **metadata)

    def end(self, key, **metadata):
        self.write("end", key, **metadata)

    def event(self, key, value, **metadata):
        self.write("event", key, value, **metadata)

    def identity(self, hyperparameters):
        """What Assay compares with the submission."""
        self.event("submission_benchmark", variable("BENCHMARK"))
        self.event("submission_division", variable("DIVISION"))
        self.event("submission_org", variable("ORGANIZATION"))
        self.event("submission_platform", variable("SYSTEM"))
        self.event("submission_status", variable("STATUS"))
        self.event("seed", variable("SEED", int))
        self.event("number_of_nodes", variable("NODE_COUNT", int))
        self.event("accelerators_per_node", 0)
        self.event("train_samples", variable("TRAIN_SAMPLES", int))
        self.event("eval_samples", variable("EVAL_SAMPLES", int))
        for key, value in hyperparameters.items():
            self.event(key, value)


def fields(message):
    """The fields of a protocol buffer: number and bytes of those that have a length."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        tag = varint()
        assert tag & 7 == 2, "only fields with a length are expected"
        length = varint()
        yield tag >> 3, message[at:at + length]
        at += length


def read_sample(path):
    """Input and target of one sample: a TFRecord with a tf.train.Example of x and y."""
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    (size,) = struct.unpack_from("<Q", data)
    example = data[12:12 + size]
    found = {}
    for _, features in fields(example):
        for _, entry in fields(features):
            key, feature = (value for _, value in fields(entry))
            ((_, values),) = fields(feature)
            found[bytes(key)] = b"".join(value for _, value in fields(values))
    counts = np.frombuffer(found[b"x"], dtype="<i2").reshape(-1, 4)
    means = np.log1p(counts.mean(axis=0))
    return np.append(means, 1.0), np.frombuffer(found[b"y"], dtype="<f4")


def read_share(folder, gang):
    paths = sorted(pathlib.Path(variable("DATASET"), folder).glob("*.tfrecord"))
    inputs, targets = zip(*(read_sample(path) for path in paths[gang.rank::gang.size]))
    return np.array(inputs), np.array(targets)


class Model:
    def __init__(self, seed):
        self.weights = np.random.default_rng(seed).normal(scale=0.1, size=(5, 4))

    def gradient(self, inputs, targets):
        return inputs.T @ (inputs @ self.weights - targets)

    def error(self, inputs, targets):
        """Sum over the samples of their mean absolute error."""
        return np.abs(inputs @ self.weights - targets).mean(axis=1).sum()


def train(gang, log, hyperparameters, model):
    """Returns the status that run_stop is logged with."""
    inputs, targets = read_share("train", gang)
    eval_inputs, eval_targets = read_share("validation", gang)
    share = hyperparameters["global_batch_size"] // gang.size
    rate = hyperparameters["opt_base_learning_rate"]
    for epoch in range(1, variable("EPOCHS_MAX", int) + 1):
        log.start("epoch_start", epoch_num=epoch)
        order = np.random.default_rng([variable("SEED", int), epoch, gang.rank])
        order = order.permutation(len(inputs))
        for begin in range(0, len(order) - share + 1, share):
            batch = order[begin:begin + share]
            total = gang.sum(model.gradient(inputs[batch], targets[batch]))
            model.weights -= rate * total / (share * gang.size)
        log.end("epoch_stop", epoch_num=epoch)
        log.start("eval_start", epoch_num=epoch)
        error, count = gang.sum([model.error(eval_inputs, eval_targets), len(eval_inputs)])
        log.event(variable("QUALITY_KEY"), error / count, epoch_num=epoch)
        log.end("eval_stop", epoch_num=epoch)
        if error / count <= variable("QUALITY_TARGET", float):
            return "success"
    return "aborted"


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("asked to stop"))
    hyperparameters = json.loads(pathlib.Path(variable("HYPERPARAMETERS")).read_text())
    log = Log(variable("RANK", int))
    log.start("init_start")
    log.identity(hyperparameters)
    gang = Gang()
    model = Model(variable("SEED", int))
    log.end("init_stop")
    gang.wait()
    log.start("run_start")
    gang.wait()  # no rank reads a sample before the clock runs
    status = train(gang, log, hyperparameters, model)
    log.end("run_stop", status=status)
    np.save(pathlib.Path(variable("OUTPUT"), f"weights_{gang.rank}.npy"), model.weights)


if __name__ == "__main__":
    main()
