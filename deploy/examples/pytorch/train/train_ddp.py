"""A training program of one's own under Assay: CosmoFlow's targets with PyTorch DDP, under torchrun.

It imports nothing of Assay. All that it is told comes from the variables of contract 1 and, for the
ranks, from torchrun; all that it says goes into the log that ASSAY_LOG names, by MLCommons' own library
(pip install mlperf-logging torch). A linear model of each channel's mean is enough for datasets of mode
"beacon"; real ones need a real model in the place of make_model and read_sample.
"""

import gzip
import json
import os
import pathlib
import signal
import struct
import sys

import torch
import torch.distributed as dist
from mlperf_logging import mllog
from torch.nn.parallel import DistributedDataParallel


def variable(name, kind=str):
    return kind(os.environ["ASSAY_" + name])


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
    counts = torch.frombuffer(bytearray(found[b"x"]), dtype=torch.int16).view(-1, 4).float()
    return torch.log1p(counts.mean(0)), torch.frombuffer(bytearray(found[b"y"]), dtype=torch.float32)


def read_share(folder, rank, size):
    paths = sorted(pathlib.Path(variable("DATASET"), folder).glob("*.tfrecord"))
    inputs, targets = zip(*(read_sample(path) for path in paths[rank::size]))
    return torch.stack(inputs), torch.stack(targets)


def make_model():
    return DistributedDataParallel(torch.nn.Linear(4, 4))


class MeanError:
    """The mean absolute error of all ranks' samples.

    Its sums live as long as it does, and it has to outlive the process group: a tensor that Python has
    forgotten is freed by a thread of gloo's, which then waits for Python's lock, while Python, which
    holds it, waits for that thread to end (seen with torch 1.13).
    """

    def __init__(self, inputs, targets):
        self.inputs, self.targets = inputs, targets
        self.sums = torch.zeros(2)

    def __call__(self, model):
        with torch.no_grad():
            self.sums[0] = (model.module(self.inputs) - self.targets).abs().mean(1).sum()
            self.sums[1] = len(self.inputs)
        dist.all_reduce(self.sums)
        return float(self.sums[0] / self.sums[1])


def train(log, hyperparameters, model, inputs, targets, mean_error):
    """Returns the status that run_stop is logged with."""
    rank, size = dist.get_rank(), dist.get_world_size()
    optimizer = torch.optim.SGD(model.parameters(), lr=hyperparameters["opt_base_learning_rate"])
    share = hyperparameters["global_batch_size"] // size
    order = torch.Generator()
    for epoch in range(1, variable("EPOCHS_MAX", int) + 1):
        log.start("epoch_start", epoch_num=epoch)
        order.manual_seed(variable("SEED", int) + 1000 * epoch + rank)
        for batch in torch.randperm(len(inputs), generator=order).split(share):
            if len(batch) == share:
                optimizer.zero_grad()
                ((model(inputs[batch]) - targets[batch]) ** 2).sum(1).mean().div(2).backward()
                optimizer.step()
        log.end("epoch_stop", epoch_num=epoch)
        log.start("eval_start", epoch_num=epoch)
        error = mean_error(model)
        log.event(variable("QUALITY_KEY"), error, epoch_num=epoch)
        log.end("eval_stop", epoch_num=epoch)
        if error <= variable("QUALITY_TARGET", float):
            return "success"
    return "aborted"


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("asked to stop"))
    hyperparameters = json.loads(pathlib.Path(variable("HYPERPARAMETERS")).read_text())
    rank = int(os.environ["RANK"])  # torchrun's
    log = Log(rank)
    log.start("init_start")
    log.identity(hyperparameters)
    torch.manual_seed(variable("SEED", int))
    dist.init_process_group("gloo")  # "nccl" where there are GPUs
    model = make_model()
    log.end("init_stop")
    dist.barrier()
    log.start("run_start")
    dist.barrier()  # no rank reads a sample before the clock runs
    inputs, targets = read_share("train", rank, dist.get_world_size())
    mean_error = MeanError(*read_share("validation", rank, dist.get_world_size()))
    status = train(log, hyperparameters, model, inputs, targets, mean_error)
    log.end("run_stop", status=status)
    if rank == 0:
        torch.save(model.module.state_dict(), pathlib.Path(variable("OUTPUT"), "model.pt"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
