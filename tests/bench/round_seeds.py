#!/usr/bin/env python3
"""How soon a round of ours reaches its target, seed by seed: prints the quality after each epoch.

    round_seeds.py cosmoflow-mini DATASET [--seeds 20] [--epochs 8]
    round_seeds.py deepcam-mini DATASET [--seeds 5]

DATASET: see docs/benchmarks. Trains with the hyperparameters of deploy/quickstart on one rank and
one core, a little beyond the target. Needs a built assay-train.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import own_rounds


def sample_count(dataset, split):
    return sum(path.suffix in (".tfrecord", ".h5") for path in Path(dataset, split).iterdir())


def spec_of(round, dataset, seed, epochs, log):
    """The run spec (proto/assay/v1/run_spec.proto, as text) that the coordinator would make."""
    submission = round.submission()
    fields = {"run": f"runs/r-{seed}", "run_number": seed, "organization": "bench",
              "system": "host", "division": "closed", "status": "research",
              "benchmark": submission["benchmark"], "round": round.name, "seed": seed,
              "epoch_count_max": epochs, "quality_target": round.stop_at,
              "quality_key": round.quality_key, "node_count": 1, "ranks_per_node": 1,
              "log_path": str(log)}
    lines = [f"{name}: {json.dumps(value)}" for name, value in fields.items()]
    lines.append('trainer { backend: "onednn" }')
    lines.append(f"dataset {{ path: {json.dumps(str(dataset))} "
                 f"train_sample_count: {sample_count(dataset, 'train')} "
                 f"eval_sample_count: {sample_count(dataset, 'validation')} }}")
    lines += [f"hyperparameters {{ key: \"{key}\" json_value: {json.dumps(json.dumps(value))} }}"
              for key, value in round.hyperparameters().items()]
    return "\n".join(lines) + "\n"


def qualities(log, key):
    for line in log.read_text().splitlines():
        record = json.loads(line.removeprefix(":::MLLOG "))
        if record["key"] == key:
            yield record["value"]


def train(round, dataset, seed, epochs, trainer):
    """The qualities after each epoch."""
    with tempfile.TemporaryDirectory() as work:
        log, spec = Path(work, "log.txt"), Path(work, "spec")
        spec.write_text(spec_of(round, dataset, seed, epochs, log))
        run = subprocess.run([trainer, spec], env={**os.environ, "OMP_NUM_THREADS": "1"},
                             stderr=subprocess.PIPE, text=True)
        if not log.exists():
            sys.exit(f"{trainer} failed:\n{run.stderr}")
        return list(qualities(log, round.quality_key))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("round", choices=own_rounds.ROUNDS)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--seeds", type=int, default=5, help="how many")
    parser.add_argument("--epochs", type=int, help="default: those of the round's own table")
    parser.add_argument("--trainer", type=Path,
                        default=own_rounds.ROOT / "build/release/bin/assay-train")
    arguments = parser.parse_args()
    round = own_rounds.ROUNDS[arguments.round]
    dataset = arguments.dataset.resolve()
    for seed in round.seeds(arguments.seeds):
        curve = train(round, dataset, seed, arguments.epochs or round.epochs, arguments.trainer)
        print(f"seed {seed}: {' '.join(f'{quality:.3f}' for quality in curve)}", flush=True)


if __name__ == "__main__":
    main()
