"""Contract 1 from a program's side: what it is told, the ranks of its run, its log, and the order of it all.

It imports nothing of Assay. All that a program is told comes from variables, all that it says goes
into the log that ASSAY_LOG names, by MLCommons' own library (pip install mlperf-logging numpy). One
process is one rank. A program of one's own is a class like Regression of train.py, given to run().
"""

import json
import os
import pathlib
import signal
import socket
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
        values = np.empty(shape)
        rest = memoryview(values.reshape(-1)).cast("B")
        while len(rest) > 0:
            count = link.recv_into(rest)
            if count == 0:
                sys.exit("another rank has gone")
            rest = rest[count:]
        return values

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


def epochs(task, log, lower_is_better):
    """Trains to the target; returns the status that run_stop is logged with."""
    target = variable("QUALITY_TARGET", float)
    for epoch in range(1, variable("EPOCHS_MAX", int) + 1):
        log.start("epoch_start", epoch_num=epoch)
        for key, value in (task.train(epoch) or {}).items():
            log.event(key, value, epoch_num=epoch)
        log.end("epoch_stop", epoch_num=epoch)
        log.start("eval_start", epoch_num=epoch)
        quality = float(task.evaluate())
        log.event(variable("QUALITY_KEY"), quality, epoch_num=epoch)
        log.end("eval_stop", epoch_num=epoch)
        if quality <= target if lower_is_better else quality >= target:
            return "success"
    return "aborted"


def run(make_task, lower_is_better):
    """A whole run. make_task(hyperparameters, gang) returns an object with
    load(folder): reads the dataset, this rank's share of it;
    train(epoch): one pass over it; returns more to log, by key, or None;
    evaluate(): the quality, the same on every rank;
    save(folder): what is to be kept."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("asked to stop"))
    hyperparameters = json.loads(pathlib.Path(variable("HYPERPARAMETERS")).read_text())
    log = Log(variable("RANK", int))
    log.start("init_start")
    log.identity(hyperparameters)
    gang = Gang()
    task = make_task(hyperparameters, gang)
    log.end("init_stop")
    gang.wait()
    log.start("run_start")
    gang.wait()  # no rank reads a sample before the clock runs
    task.load(pathlib.Path(variable("DATASET")))
    status = epochs(task, log, lower_is_better)
    log.end("run_stop", status=status)
    task.save(pathlib.Path(variable("OUTPUT")))
