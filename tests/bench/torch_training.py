"""The command line that the trainings in plain PyTorch share."""

import argparse

import torch


def main(description, round, load, train):
    """Trains once per seed and prints a line of the qualities after each epoch.

    `load(dataset, split)` reads a split; `train(splits, seed, epochs)` yields the qualities.
    """
    parser = argparse.ArgumentParser(description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--seeds", type=int, default=5, help="how many")
    parser.add_argument("--epochs", type=int, default=round.epochs)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    data = load(arguments.dataset, "train"), load(arguments.dataset, "validation")
    for seed in round.seeds(arguments.seeds):
        print(f"seed {seed}:", end="", flush=True)
        for quality in train(data, seed, arguments.epochs):
            print(f" {quality:.3f}", end="", flush=True)
            if round.is_done(quality):
                break
        print(flush=True)
