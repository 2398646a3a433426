#!/usr/bin/env python3
"""Trains one round in Assay and in PyTorch, seed by seed, and says whether they reach the same.

    convergence.py cosmoflow-mini DATASET [--seeds 5]
    convergence.py deepcam-mini DATASET [--seeds 5]

Both sides get the same samples in the same order, initial weights and hyperparameters; after some
steps rounding drives them apart as far as two seeds of one side are. Prints a table in Markdown:
the quality after each epoch, then for the last epoch each side's mean and deviation, and the paired
difference with its standard error. Exit status 1 if the means differ by more than three standard
errors. Needs torch and numpy (DeepCAM: h5py too) and a built assay-train.
"""

import argparse
import statistics
import subprocess
import sys
from pathlib import Path

import own_rounds

HERE = Path(__file__).resolve().parent
TORCH = {"cosmoflow-mini": "cosmoflow_torch.py", "deepcam-mini": "deepcam_torch.py"}
STANDARD_ERRORS = 3


def curves(script, options):
    """The lines "seed 201: 0.401 0.405" that both scripts print, as seed -> qualities."""
    found = {}
    command = [sys.executable, HERE / script, *map(str, options)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        print(f"{script} {line.strip()}", file=sys.stderr, flush=True)
        label, values = line.split(":")
        found[int(label.split()[1])] = [float(value) for value in values.split()]
    if process.wait() != 0:
        sys.exit(f"{script} failed")
    return found


def print_curves(name, sides):
    epochs = max(len(values) for side in sides.values() for values in side.values())
    print(f"| seed | side | {' | '.join(map(str, range(1, epochs + 1)))} |")
    print("|---" * (epochs + 2) + "|")
    for seed in next(iter(sides.values())):
        for side, values in sides.items():
            cells = [f"{value:.3f}" for value in values[seed]] + [""] * (epochs - len(values[seed]))
            print(f"| {seed} | {side} | {' | '.join(cells)} |")
    print(f"\n`{name}` after each epoch.")


def is_equal(sides):
    """Prints mean and deviation of the last common epoch; whether the means are equal."""
    ours, theirs = sides["Assay"], sides["PyTorch"]
    last = min(len(values) for side in sides.values() for values in side.values()) - 1
    for side, values in sides.items():
        numbers = [curve[last] for curve in values.values()]
        print(f"{side}: mean {statistics.mean(numbers):.4f}, deviation "
              f"{statistics.stdev(numbers):.4f} after epoch {last + 1}, {len(numbers)} seeds")
    differences = [ours[seed][last] - theirs[seed][last] for seed in ours]
    mean = statistics.mean(differences)
    error = statistics.stdev(differences) / len(differences) ** 0.5
    print(f"Assay minus PyTorch: {mean:+.4f}, standard error {error:.4f}")
    return abs(mean) <= STANDARD_ERRORS * error + 5e-4  # the scripts print three digits


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("round", choices=own_rounds.ROUNDS)
    parser.add_argument("dataset")
    parser.add_argument("--seeds", type=int, default=5, help="how many, at least 2")
    parser.add_argument("--epochs", type=int, help="default: those of the round's own table")
    parser.add_argument("--trainer", default=own_rounds.ROOT / "build/release/bin/assay-train")
    arguments = parser.parse_args()
    round = own_rounds.ROUNDS[arguments.round]
    options = [arguments.dataset, "--seeds", arguments.seeds,
               "--epochs", arguments.epochs or round.epochs]
    sides = {
        "Assay": curves("round_seeds.py", [round.name, *options, "--trainer", arguments.trainer]),
        "PyTorch": curves(TORCH[round.name], options),
    }
    print_curves(round.quality_key, sides)
    print()
    return 0 if is_equal(sides) else 1


if __name__ == "__main__":
    sys.exit(main())
