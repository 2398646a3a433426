"""Runs the public reference implementation of DeepCAM under contract 1, without changing it.

REFERENCE names its folder deepcam/src/deepCam of mlcommons/hpc, which is not part of Assay. This file
translates what Assay tells into its options, and stands in for what it takes from elsewhere: see
docs/adapters.md, "The reference's own code".
"""

import contextlib
import json
import os
import pathlib
import runpy
import sys
import types

import h5py
import torch
import torch.distributed as dist
from mlperf_logging import mllog


def variable(name, kind=str):
    return kind(os.environ["ASSAY_" + name])


def options(hyperparameters):
    """The reference's command line."""
    h, world = dict(hyperparameters), variable("WORLD_SIZE", int)
    betas = [str(beta) for beta in h["opt_betas"]]
    schedule = {"type": h["scheduler_type"]}
    if h["scheduler_type"] == "multistep":
        schedule["milestones"] = " ".join(str(step) for step in h["scheduler_milestones"])
        schedule["decay_rate"] = h["scheduler_decay_rate"]
    else:
        schedule |= {"t_max": h["scheduler_t_max"], "eta_min": h["scheduler_eta_min"]}
    told = {"wireup_method": "mpi", "run_tag": variable("RUN"), "output_dir": variable("OUTPUT"),
            "data_dir_prefix": variable("DATASET"), "max_inter_threads": 0,
            "max_epochs": variable("EPOCHS_MAX"), "target_iou": variable("QUALITY_TARGET"),
            "seed": variable("SEED"), "local_batch_size": h["global_batch_size"] // world,
            "optimizer": h["opt_name"], "start_lr": h["opt_lr"],
            "weight_decay": h["opt_weight_decay"],
            "gradient_accumulation_frequency": h["gradient_accumulation_frequency"],
            "batchnorm_group_size": h["batchnorm_group_size"],
            "lr_warmup_steps": h["scheduler_lr_warmup_steps"],
            "lr_warmup_factor": h["scheduler_lr_warmup_factor"],
            "lr_schedule": ",".join(f"{key}={value}" for key, value in schedule.items())}
    line = [f"--{name}={value}" for name, value in told.items()]
    return line + ["--optimizer_betas", *betas]


def gloo_for_mpi():
    """PyTorch from a package has no MPI. What was reduced is kept: a tensor that Python has forgotten
    is freed by a thread of gloo's (torch 1.13), which may then wait for ever."""
    begin, kept = dist.init_process_group, []

    def init_process_group(backend, **_):
        begin("gloo", rank=variable("RANK", int), world_size=variable("WORLD_SIZE", int))

    def keeping(reduce):
        def wrapped(tensor, *arguments, **named):
            kept.append(tensor)
            return reduce(tensor, *arguments, **named)
        return wrapped

    dist.init_process_group = init_process_group
    for name in ("all_reduce", "reduce", "broadcast"):
        setattr(dist, name, keeping(getattr(dist, name)))


def nothing_for_cuda():
    """The statistics of batch normalisation are synchronised by way of the GPU."""
    if not torch.cuda.is_available():
        torch.cuda.synchronize = lambda *_: None


def log_of_assay():
    """One file, and the identity that the reference has as constants."""
    configure, logger = mllog.config, mllog.get_mllogger()
    event = logger.event
    identity = {"submission_benchmark": "BENCHMARK", "submission_org": "ORGANIZATION",
                "submission_division": "DIVISION", "submission_status": "STATUS",
                "submission_platform": "SYSTEM"}

    def event_of_assay(key, value=None, **named):
        named["stack_offset"] = named.get("stack_offset", 0) + 1
        event(key=key, value=variable(identity[key]) if key in identity else value, **named)

    mllog.config = lambda **named: configure(**named | {"filename": variable("LOG")})
    logger.event = event_of_assay


def edges():
    """Height and width of the maps."""
    manifest = json.loads(pathlib.Path(variable("DATASET"), "manifest.json").read_text())
    return tuple(int(manifest["parameters"][name]) for name in ("height", "width"))


def maps_of_this_size(architecture):
    """The reference's global mean is spread over 48 x 72 places, those of maps of 768 x 1152."""
    make = architecture.Bottleneck.__init__

    def make_smaller(self, *arguments, **named):
        make(self, *arguments, **named)
        self.tiles = (1, 1, *(edge // 16 for edge in edges()))

    architecture.Bottleneck.__init__ = make_smaller


class Shapes:
    """A sample's file of which nothing but the shapes is known, from the manifest."""

    def __init__(self):
        self.shapes = {"data": (*edges(), 16), "labels_0": edges()}

    def __getitem__(self, name):
        return self if name == "climate" else types.SimpleNamespace(shape=self.shapes[name])


def no_sample_before_the_clock(log_class, dataset_module):
    """The reference opens a sample of each split for its shape before run_start, which is a finding
    (R-TIM-001): until then it gets the shapes alone."""
    start, has_started = log_class.log_start, []
    samples = [os.path.join(variable("DATASET"), split) for split in ("train", "validation")]

    def log_start(self, *arguments, **named):
        start(self, *arguments, **named)
        if named.get("key") == "run_start":
            has_started.append(True)

    def file(path, mode):
        if has_started or os.path.dirname(path) not in samples:
            return h5py.File(path, mode)
        return contextlib.nullcontext(Shapes())

    log_class.log_start = log_start
    dataset_module.h5 = types.SimpleNamespace(File=file)


def main():
    reference = os.environ["REFERENCE"]
    sys.path.insert(0, reference)
    gloo_for_mpi()
    nothing_for_cuda()
    log_of_assay()
    import architecture.deeplab_xception
    import data.cam_hdf5_dataset
    import utils.mlperf_log_utils
    maps_of_this_size(architecture.deeplab_xception)
    no_sample_before_the_clock(utils.mlperf_log_utils.mlperf_logger, data.cam_hdf5_dataset)
    hyperparameters = json.loads(pathlib.Path(variable("HYPERPARAMETERS")).read_text())
    sys.argv = [os.path.join(reference, "train.py"), *options(hyperparameters)]
    runpy.run_path(sys.argv[0], run_name="__main__")
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
