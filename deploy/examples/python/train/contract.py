"""Contract 1 from a program's side: what it is told, its log, and the order of it all.

It imports nothing of Assay. All that a program is told comes from variables, all that it says goes
into the log that ASSAY_LOG names, by MLCommons' own library (pip install mlperf-logging). One process
is one rank. A program of one's own is a class like Regression of train.py, given to run().
"""

import json
import os
import pathlib
import signal
import sys

from mlperf_logging import mllog


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


def run(make_task, make_gang, lower_is_better):
    """A whole run. make_gang() connects all ranks and returns an object with wait(), which returns when
    all have called it. make_task(hyperparameters, gang) returns an object with
    load(folder): reads the dataset, this rank's share of it;
    train(epoch): one pass over it; returns more to log, by key, or None;
    evaluate(): the quality, the same on every rank;
    save(folder): what is to be kept."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("asked to stop"))
    hyperparameters = json.loads(pathlib.Path(variable("HYPERPARAMETERS")).read_text())
    log = Log(int(os.environ["RANK"]))  # Assay's, or the launcher's (torchrun)
    log.start("init_start")
    log.identity(hyperparameters)
    gang = make_gang()
    task = make_task(hyperparameters, gang)
    log.end("init_stop")
    gang.wait()
    log.start("run_start")
    gang.wait()  # no rank reads a sample before the clock runs
    task.load(pathlib.Path(variable("DATASET")))
    status = epochs(task, log, lower_is_better)
    log.end("run_stop", status=status)
    task.save(pathlib.Path(variable("OUTPUT")))
