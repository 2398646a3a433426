"""A small convolutional network in numpy, for the images of make_shapes.py: benchmark "shapes".

Two convolutions, the mean and the maximum over all places, one linear layer; sigmoid cross-entropy
with rare classes weighted up. The quality is the mean average precision over the classes.
"""

import json
import time

import numpy as np

from adam import Adam
from contract import run, variable
from gang import Gang


def patches(x, size, stride):
    """[batch, height, width, size * size * channels]: what each place of a convolution sees."""
    margin = size // 2
    padded = np.pad(x, ((0, 0), (margin, margin), (margin, margin), (0, 0)))
    seen = np.lib.stride_tricks.sliding_window_view(padded, (size, size), axis=(1, 2))
    seen = seen[:, ::stride, ::stride].transpose(0, 1, 2, 4, 5, 3)
    return seen.reshape(*seen.shape[:3], -1)


def patches_back(back, size, shape):
    """The same with stride 1 the other way: sums what each place of x was seen as."""
    margin = size // 2
    batch, height, width, channels = shape
    x = np.zeros((batch, height + 2 * margin, width + 2 * margin, channels), back.dtype)
    back = back.reshape(batch, height, width, size, size, channels)
    for row in range(size):
        for column in range(size):
            x[:, row:row + height, column:column + width] += back[:, :, :, row, column]
    return x[:, margin:margin + height, margin:margin + width]


class Network:
    def __init__(self, classes, filters, seed):
        random = np.random.default_rng(seed)

        def layer(inputs, outputs):
            scale = np.sqrt(2 / inputs)
            return random.normal(scale=scale, size=(inputs, outputs)).astype(np.float32)

        self.weights = {"first": layer(25 * 3, filters), "first_bias": np.zeros(filters, np.float32),
                        "second": layer(9 * filters, 2 * filters),
                        "second_bias": np.zeros(2 * filters, np.float32),
                        "last": layer(4 * filters, classes),
                        "last_bias": np.full(classes, -2, np.float32)}

    def forward(self, images):
        w = self.weights
        seen = patches(images, 5, 2)
        first = np.maximum(seen @ w["first"] + w["first_bias"], 0)
        seen_next = patches(first, 3, 1)
        second = np.maximum(seen_next @ w["second"] + w["second_bias"], 0)
        places = second.reshape(len(images), -1, second.shape[-1])
        pooled = np.concatenate([places.mean(axis=1), places.max(axis=1)], axis=1)
        return pooled @ w["last"] + w["last_bias"], (seen, first, seen_next, places, pooled)

    def gradients(self, images, labels, weight):
        """Of the mean over images and classes of the weighted cross-entropy."""
        w = self.weights
        logits, (seen, first, seen_next, places, pooled) = self.forward(images)
        share = 1 / (1 + np.exp(-logits))
        back = (share * (1 - labels) - (1 - share) * labels * weight) / logits.size
        gradients = {"last": pooled.T @ back, "last_bias": back.sum(axis=0)}
        mean, most = np.split(back @ w["last"].T, 2, axis=1)
        places_back = np.repeat(mean[:, None] / places.shape[1], places.shape[1], axis=1)
        at = places.argmax(axis=1)[:, None]
        np.put_along_axis(places_back, at,
                          np.take_along_axis(places_back, at, axis=1) + most[:, None], axis=1)
        flat = (places_back * (places > 0)).reshape(-1, places.shape[-1])
        gradients |= {"second": seen_next.reshape(len(flat), -1).T @ flat,
                      "second_bias": flat.sum(axis=0)}
        first_back = patches_back(flat @ w["second"].T, 3, first.shape) * (first > 0)
        flat = first_back.reshape(-1, first.shape[-1])
        return gradients | {"first": seen.reshape(len(flat), -1).T @ flat,
                            "first_bias": flat.sum(axis=0)}


def average_precision(scores, is_label):
    """The area below precision over recall, one step for each distinct score."""
    order = np.argsort(-scores, kind="stable")
    scores, hits = scores[order], np.cumsum(is_label[order])
    last = np.append(np.flatnonzero(np.diff(scores)), len(scores) - 1)  # of equal scores
    precision, recall = hits[last] / (last + 1), hits[last] / hits[-1]
    return float(np.sum(np.diff(recall, prepend=0) * precision))


def mean_average_precision(scores, labels):
    """Over the classes that occur; scores and labels are [image, class]."""
    occur = [c for c in range(labels.shape[1]) if labels[:, c].any()]
    return float(np.mean([average_precision(scores[:, c], labels[:, c]) for c in occur]))


def read_images(paths, edge, classes):
    images = np.empty((len(paths), edge, edge, 3), np.float32)
    labels = np.zeros((len(paths), classes), np.float32)
    for i, path in enumerate(paths):
        data = path.read_bytes()
        size = 3 * edge * edge
        images[i] = np.frombuffer(data[:size], np.uint8).reshape(edge, edge, 3) / 127.5 - 1
        labels[i, np.frombuffer(data[size:], "<u2")] = 1
    return images, labels


class Shapes:
    def __init__(self, hyperparameters, gang):
        self.hyperparameters, self.gang = hyperparameters, gang
        self.network = Network(hyperparameters["class_count"], hyperparameters["base_filter_count"],
                               variable("SEED", int))
        self.adam = Adam(self.network.weights, gang, hyperparameters)

    def load(self, folder):
        gang, classes = self.gang, self.hyperparameters["class_count"]
        edge = json.loads((folder / "taxonomy.json").read_text())["edge"]

        def share(split):
            paths = sorted((folder / split).glob("*.img"))[gang.rank::gang.size]
            return read_images(paths, edge, classes)

        self.images, self.labels = share("train")
        self.validation = share("validation")
        count = gang.sum(self.labels.sum(axis=0))
        total = variable("TRAIN_SAMPLES", int)
        self.weight = np.sqrt((total - count) / np.maximum(count, 1)).astype(np.float32)

    def train(self, epoch):
        batch = self.hyperparameters["global_batch_size"]
        share = batch // self.gang.size
        order = np.random.default_rng([variable("SEED", int), epoch, self.gang.rank])
        order = order.permutation(len(self.images))
        begin, steps = time.monotonic(), variable("TRAIN_SAMPLES", int) // self.gang.size // share
        for step in range(steps):
            some = order[step * share:(step + 1) * share]
            self.adam.step(self.network.gradients(self.images[some], self.labels[some], self.weight))
        return {"train_images_per_second": steps * batch / (time.monotonic() - begin)}

    def evaluate(self):
        """Every rank scores its share; the sum of all ranks' tables is the whole table."""
        images, labels = self.validation
        table = np.zeros((2, variable("EVAL_SAMPLES", int), labels.shape[1]))
        for at in range(0, len(images), 128):
            rows = self.gang.rank + self.gang.size * np.arange(at, min(at + 128, len(images)))
            table[0, rows] = self.network.forward(images[at:at + 128])[0]
            table[1, rows] = labels[at:at + 128]
        self.table = self.gang.sum(table)
        return mean_average_precision(*self.table)

    def save(self, folder):
        if self.gang.rank == 0:
            np.savez(folder / "weights.npz", **self.network.weights)
            np.savez(folder / "scores.npz", scores=self.table[0], labels=self.table[1])


if __name__ == "__main__":
    run(Shapes, Gang, lower_is_better=False)
