"""The program of train.py with PyTorch DDP, under torchrun.

A linear model of each channel's mean is enough for datasets of mode "beacon"; real ones need a real
model in the place of torch.nn.Linear and read_sample.
"""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from contract import run, variable
from records import read_features

# Of evaluate. It has to outlive the process group: a tensor that Python has forgotten is freed by a
# thread of gloo's, which then waits for Python's lock, while Python, which holds it, waits for that
# thread to end (seen with torch 1.13).
SUMS = torch.zeros(2)


class Gang:
    """All ranks of the run, which torchrun has started."""

    def __init__(self):
        dist.init_process_group("gloo")  # "nccl" where there are GPUs
        self.rank, self.size = dist.get_rank(), dist.get_world_size()

    def wait(self):
        dist.barrier()


def read_sample(path):
    """Input and target of one sample."""
    features = read_features(path)
    counts = torch.frombuffer(bytearray(features[b"x"]), dtype=torch.int16).view(-1, 4).float()
    target = torch.frombuffer(bytearray(features[b"y"]), dtype=torch.float32)
    return torch.log1p(counts.mean(0)), target


def read_share(folder, gang):
    paths = sorted(folder.glob("*.tfrecord"))
    inputs, targets = zip(*(read_sample(path) for path in paths[gang.rank::gang.size]))
    return torch.stack(inputs), torch.stack(targets)


class Regression:
    def __init__(self, hyperparameters, gang):
        self.gang = gang
        torch.manual_seed(variable("SEED", int))
        self.model = DistributedDataParallel(torch.nn.Linear(4, 4))
        rate = hyperparameters["opt_base_learning_rate"]
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=rate)
        self.share = hyperparameters["global_batch_size"] // gang.size

    def load(self, folder):
        self.inputs, self.targets = read_share(folder / "train", self.gang)
        self.validation = read_share(folder / "validation", self.gang)

    def train(self, epoch):
        order = torch.Generator().manual_seed(
            variable("SEED", int) + 1000 * epoch + self.gang.rank)
        for batch in torch.randperm(len(self.inputs), generator=order).split(self.share):
            if len(batch) == self.share:
                self.optimizer.zero_grad()
                errors = (self.model(self.inputs[batch]) - self.targets[batch]) ** 2
                errors.sum(1).mean().div(2).backward()
                self.optimizer.step()

    def evaluate(self):
        inputs, targets = self.validation
        with torch.no_grad():
            SUMS[0] = (self.model.module(inputs) - targets).abs().mean(1).sum()
            SUMS[1] = len(inputs)
        dist.all_reduce(SUMS)
        return SUMS[0] / SUMS[1]

    def save(self, folder):
        if self.gang.rank == 0:
            torch.save(self.model.module.state_dict(), folder / "model.pt")


def main():
    run(Regression, Gang, lower_is_better=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
