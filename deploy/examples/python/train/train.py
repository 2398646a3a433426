"""A training program of one's own under Assay: CosmoFlow's targets by linear regression, in numpy.

Each rank has its share of the samples, and the gradients are summed over TCP (gang.py). A linear
model of each channel's mean is enough for datasets of mode "beacon"; real ones need a real model in
the place of Model.
"""

import numpy as np

from contract import Log, run, variable  # noqa: F401, for who imports them from here
from gang import Gang
from records import read_features


def read_sample(path):
    """Input and target of one sample."""
    features = read_features(path)
    counts = np.frombuffer(features[b"x"], dtype="<i2").reshape(-1, 4)
    means = np.log1p(counts.mean(axis=0))
    return np.append(means, 1.0), np.frombuffer(features[b"y"], dtype="<f4")


def read_share(folder, gang):
    paths = sorted(folder.glob("*.tfrecord"))
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


class Regression:
    def __init__(self, hyperparameters, gang):
        self.hyperparameters, self.gang = hyperparameters, gang
        self.model = Model(variable("SEED", int))

    def load(self, folder):
        self.inputs, self.targets = read_share(folder / "train", self.gang)
        self.validation = read_share(folder / "validation", self.gang)

    def train(self, epoch):
        gang, model = self.gang, self.model
        share = self.hyperparameters["global_batch_size"] // gang.size
        rate = self.hyperparameters["opt_base_learning_rate"]
        order = np.random.default_rng([variable("SEED", int), epoch, gang.rank])
        order = order.permutation(len(self.inputs))
        for begin in range(0, len(order) - share + 1, share):
            batch = order[begin:begin + share]
            total = gang.sum(model.gradient(self.inputs[batch], self.targets[batch]))
            model.weights -= rate * total / (share * gang.size)

    def evaluate(self):
        error, count = self.gang.sum([self.model.error(*self.validation), len(self.validation[0])])
        return error / count

    def save(self, folder):
        np.save(folder / f"weights_{self.gang.rank}.npy", self.model.weights)


def main():
    run(Regression, Gang, lower_is_better=True)


if __name__ == "__main__":
    main()
