"""AdamW for a dictionary of arrays, with gradients summed over all ranks."""

import numpy as np


class Adam:
    def __init__(self, weights, gang, hyperparameters):
        self.weights, self.gang = weights, gang
        self.rate = hyperparameters["opt_base_learning_rate"]
        self.decay = hyperparameters.get("opt_weight_decay", 0)
        self.warmup = max(hyperparameters.get("opt_learning_rate_warmup_steps", 0), 1)
        self.clip = hyperparameters.get("opt_gradient_clip_norm", 1.0)
        self.mean = {name: np.zeros_like(array) for name, array in weights.items()}
        self.square = {name: np.zeros_like(array) for name, array in weights.items()}
        self.steps = 0

    def step(self, gradients):
        """One step along the mean of all ranks' gradients, which are of means over equal shares."""
        names = sorted(gradients)
        flat = np.concatenate([gradients[name].ravel() for name in names])
        flat = (self.gang.sum(flat) / self.gang.size).astype(np.float32)
        flat *= min(1.0, self.clip / (np.linalg.norm(flat) + 1e-12))
        self.steps += 1
        rate = self.rate * min(1.0, self.steps / self.warmup)
        at = 0
        for name in names:
            array = self.weights[name]
            gradient = flat[at:at + array.size].reshape(array.shape)
            at += array.size
            self.mean[name] += 0.1 * (gradient - self.mean[name])
            self.square[name] += 0.05 * (gradient**2 - self.square[name])
            mean = self.mean[name] / (1 - 0.9**self.steps)
            square = self.square[name] / (1 - 0.95**self.steps)
            if array.ndim > 1:
                array *= 1 - rate * self.decay
            array -= rate * mean / (np.sqrt(square) + 1e-8)
