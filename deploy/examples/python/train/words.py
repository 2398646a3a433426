"""A decoder-only transformer in numpy, for the corpora of make_words.py: benchmark "words".

Learned positions, layer normalisation before each part, GELU, one matrix for embedding and output.
A sample is a token: train_samples, eval_samples and global_batch_size count tokens, and so do rates.
"""

import time

import numpy as np

from adam import Adam
from contract import run, variable
from gang import Gang

CURVE = float(np.sqrt(2 / np.pi))  # a plain number, so that float32 stays float32


def normalise(x, gain, shift):
    centred = x - x.mean(axis=-1, keepdims=True)
    scale = 1 / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5)
    unit = centred * scale
    return unit * gain + shift, (unit, scale)


def normalise_back(back, kept, gain, gradients, name):
    unit, scale = kept
    gradients[name + "_gain"] = (back * unit).reshape(-1, unit.shape[-1]).sum(axis=0)
    gradients[name + "_shift"] = back.reshape(-1, unit.shape[-1]).sum(axis=0)
    back = back * gain
    mean = back.mean(axis=-1, keepdims=True)
    return scale * (back - mean - unit * (back * unit).mean(axis=-1, keepdims=True))


def gelu(x):
    bent = np.tanh(CURVE * x * (1 + 0.044715 * x * x))
    return 0.5 * x * (1 + bent), bent


def gelu_back(back, x, bent):
    slope = CURVE * (1 + 3 * 0.044715 * x * x)
    return back * (0.5 * (1 + bent) + 0.5 * x * (1 - bent * bent) * slope)


def softmax(x):
    x = np.exp(x - x.max(axis=-1, keepdims=True))
    return x / x.sum(axis=-1, keepdims=True)


class Transformer:
    def __init__(self, tokens, length, width, layers, heads, seed):
        self.heads, self.layers = heads, layers
        random = np.random.default_rng(seed)

        def matrix(rows, columns, scale=0.02):
            return random.normal(scale=scale, size=(rows, columns)).astype(np.float32)

        def vector(value, size=width):
            return np.full(size, value, np.float32)

        self.weights = w = {"embedding": matrix(tokens, width), "position": matrix(length, width),
                            "end_gain": vector(1), "end_shift": vector(0)}
        residual = 0.02 / np.sqrt(2 * layers)
        for i in range(layers):
            w |= {f"{i}_attention_gain": vector(1), f"{i}_attention_shift": vector(0),
                  f"{i}_in": matrix(width, 3 * width), f"{i}_in_bias": vector(0, 3 * width),
                  f"{i}_out": matrix(width, width, residual), f"{i}_out_bias": vector(0),
                  f"{i}_perceptron_gain": vector(1), f"{i}_perceptron_shift": vector(0),
                  f"{i}_up": matrix(width, 4 * width), f"{i}_up_bias": vector(0, 4 * width),
                  f"{i}_down": matrix(4 * width, width, residual), f"{i}_down_bias": vector(0)}
        self.mask = np.triu(np.full((length, length), -1e9, np.float32), 1)

    def split(self, x):
        batch, length, _ = x.shape
        return x.reshape(batch, length, self.heads, -1).transpose(0, 2, 1, 3)

    @staticmethod
    def join(x):
        batch, _, length, _ = x.shape
        return x.transpose(0, 2, 1, 3).reshape(batch, length, -1)

    def attend(self, x, i):
        query, key, value = (self.split(part) for part in
                             np.split(self.linear(x, f"{i}_in"), 3, axis=-1))
        scale = np.float32(query.shape[-1]**-0.5)
        share = softmax(query @ key.swapaxes(-1, -2) * scale + self.mask)
        mixed = self.join(share @ value)
        return self.linear(mixed, f"{i}_out"), (x, query, key, value, share, mixed)

    def attend_back(self, back, kept, i, gradients):
        x, query, key, value, share, mixed = kept
        mixed_back = self.linear_back(back, mixed, f"{i}_out", gradients)
        mixed_back = self.split(mixed_back)
        share_back = mixed_back @ value.swapaxes(-1, -2)
        scale = np.float32(query.shape[-1]**-0.5)
        score_back = share * (share_back - (share_back * share).sum(axis=-1, keepdims=True)) * scale
        parts = (score_back @ key, score_back.swapaxes(-1, -2) @ query,
                 share.swapaxes(-1, -2) @ mixed_back)
        joined = np.concatenate([self.join(part) for part in parts], axis=-1)
        return self.linear_back(joined, x, f"{i}_in", gradients)

    def linear(self, x, name):
        flat = x.reshape(-1, x.shape[-1]) @ self.weights[name] + self.weights[name + "_bias"]
        return flat.reshape(*x.shape[:-1], -1)

    def linear_back(self, back, x, name, gradients):
        flat = back.reshape(-1, back.shape[-1])
        gradients[name] = x.reshape(-1, x.shape[-1]).T @ flat
        gradients[name + "_bias"] = flat.sum(axis=0)
        return (flat @ self.weights[name].T).reshape(x.shape)

    def forward(self, tokens):
        """Logits of the next token at every place, and what the way back needs."""
        w = self.weights
        x = w["embedding"][tokens] + w["position"]
        kept = []
        for i in range(self.layers):
            normal, first = normalise(x, w[f"{i}_attention_gain"], w[f"{i}_attention_shift"])
            mixed, attention = self.attend(normal, i)
            x = x + mixed
            normal, second = normalise(x, w[f"{i}_perceptron_gain"], w[f"{i}_perceptron_shift"])
            up = self.linear(normal, f"{i}_up")
            bent, curve = gelu(up)
            x = x + self.linear(bent, f"{i}_down")
            kept.append((first, attention, second, normal, up, curve, bent))
        end, last = normalise(x, w["end_gain"], w["end_shift"])
        return end @ w["embedding"].T, (tokens, kept, end, last)

    def losses(self, tokens, targets):
        """Nats of every token, [batch, length]."""
        logits = self.forward(tokens)[0].astype(np.float64)
        logits -= logits.max(axis=-1, keepdims=True)
        chosen = np.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
        return np.log(np.exp(logits).sum(axis=-1)) - chosen

    def gradients(self, tokens, targets):
        """Of the mean loss of these tokens."""
        w = self.weights
        logits, (_, kept, end, last) = self.forward(tokens)
        back = softmax(logits)
        flat = back.reshape(-1, back.shape[-1])
        flat[np.arange(targets.size), targets.ravel()] -= 1
        back /= targets.size
        gradients = {}
        embedding = flat.T @ end.reshape(-1, end.shape[-1])
        x_back = normalise_back(back @ w["embedding"], last, w["end_gain"], gradients, "end")
        for i in reversed(range(self.layers)):
            first, attention, second, normal, up, curve, bent = kept[i]
            bent_back = self.linear_back(x_back, bent, f"{i}_down", gradients)
            up_back = gelu_back(bent_back, up, curve)
            normal_back = self.linear_back(up_back, normal, f"{i}_up", gradients)
            x_back = x_back + normalise_back(normal_back, second, w[f"{i}_perceptron_gain"],
                                             gradients, f"{i}_perceptron")
            normal_back = self.attend_back(x_back, attention, i, gradients)
            x_back = x_back + normalise_back(normal_back, first, w[f"{i}_attention_gain"],
                                             gradients, f"{i}_attention")
        is_token = np.eye(len(embedding), dtype=x_back.dtype)[tokens.ravel()]
        embedding += is_token.T @ x_back.reshape(-1, x_back.shape[-1])
        return gradients | {"embedding": embedding, "position": x_back.sum(axis=0)}


def read_tokens(folder):
    return np.concatenate([np.fromfile(path, dtype="<u2").astype(np.int64)
                           for path in sorted(folder.glob("*.bin"))])


def windows(tokens, length, starts):
    """Inputs and targets: the tokens from each start on, and those one further."""
    at = starts[:, None] + np.arange(length)
    return tokens[at], tokens[at + 1]


class Words:
    def __init__(self, hyperparameters, gang):
        h = self.hyperparameters = hyperparameters
        self.gang, self.length = gang, h["sequence_length"]
        if h["global_batch_size"] % (self.length * gang.size) != 0:
            raise SystemExit("global_batch_size, in tokens, is no multiple of sequence_length x ranks")
        self.model = Transformer(h["vocabulary_size"], self.length, h["embedding_size"],
                                 h["layer_count"], h["head_count"], variable("SEED", int))
        self.adam = Adam(self.model.weights, gang, h)

    def load(self, folder):
        self.tokens = read_tokens(folder / "train")
        self.validation = read_tokens(folder / "validation")

    def train(self, epoch):
        """As many random windows as the corpus has tokens for."""
        batch = self.hyperparameters["global_batch_size"]
        share = batch // (self.length * self.gang.size)
        random = np.random.default_rng([variable("SEED", int), epoch, self.gang.rank])
        begin, steps = time.monotonic(), max(len(self.tokens) // batch, 1)
        for _ in range(steps):
            starts = random.integers(len(self.tokens) - self.length, size=share)
            self.adam.step(self.model.gradients(*windows(self.tokens, self.length, starts)))
        return {"train_tokens_per_second": steps * batch / (time.monotonic() - begin)}

    def evaluate(self):
        """The perplexity of all tokens but the first, each predicted from at least half a window
        where there are as many before it."""
        half = self.length // 2
        starts = np.arange(0, len(self.validation) - self.length, half)
        nats = count = 0
        for some in np.array_split(starts[self.gang.rank::self.gang.size], max(len(starts) // 64, 1)):
            if len(some) == 0:
                continue
            losses = self.model.losses(*windows(self.validation, self.length, some))
            for start, loss in zip(some, losses):
                counted = loss if start == 0 else loss[half:]
                nats, count = nats + counted.sum(), count + counted.size
        nats, count = self.gang.sum([nats, count])
        return np.exp(nats / count)

    def save(self, folder):
        if self.gang.rank == 0:
            np.savez(folder / "weights.npz", **self.model.weights)


if __name__ == "__main__":
    run(Words, Gang, lower_is_better=True)
