"""What the trainings in plain PyTorch share: a round's settings and the command line."""

import argparse
import tomllib
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]


def settings_of(name):
    with open(ROOT / "deploy/quickstart" / f"{name}.toml", "rb") as file:
        return tomllib.load(file)["hyperparameters"]


def main(description, load, train, *, seeds, epochs, is_done=lambda quality: False):
    """Trains once per seed and prints a line of the qualities after each epoch.

    `load(dataset, split)` reads a split; `train(splits, seed, epochs)` yields the qualities.
    """
    parser = argparse.ArgumentParser(description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--seeds", default=seeds)
    parser.add_argument("--epochs", type=int, default=epochs)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    data = load(arguments.dataset, "train"), load(arguments.dataset, "validation")
    for seed in map(int, arguments.seeds.split(",")):
        print(f"seed {seed}:", end="", flush=True)
        for quality in train(data, seed, arguments.epochs):
            print(f" {quality:.3f}", end="", flush=True)
            if is_done(quality):
                break
        print(flush=True)
