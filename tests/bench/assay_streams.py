"""Assay's random streams (common/random.h) in numpy.

With them a PyTorch script begins from the very weights that Assay draws for a seed, and reads the
samples in the same order, so that only arithmetic tells the two trainings apart.
"""

import numpy as np

INIT, SHUFFLE = 1, 3  # Purpose in common/random.h
_MASK32, _MASK64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF


def _mix(x):
    """The 64-bit finaliser (Stafford's variant 13) that spreads nearby seeds apart."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK64
    return x ^ (x >> 31)


def _philox(low, high, rank, epoch, key):
    """Philox4x32-10 over arrays of block numbers (Salmon et al., SC 2011): four arrays of words."""
    c = [low, high, np.full_like(low, rank), np.full_like(low, epoch)]
    k0, k1 = key
    mask, shift = np.uint64(_MASK32), np.uint64(32)
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [(p1 >> shift) ^ c[1] ^ np.uint64(k0), p1 & mask,
             (p0 >> shift) ^ c[3] ^ np.uint64(k1), p0 & mask]
        k0, k1 = (k0 + 0x9E3779B9) & _MASK32, (k1 + 0xBB67AE85) & _MASK32
    return np.stack(c)


class Stream:
    """One stream of values, addressed by arrays of indices."""

    def __init__(self, seed, purpose, rank=0, epoch=0):
        mixed = _mix(_mix((seed + 0x9E3779B97F4A7C15) & _MASK64) ^ purpose)
        self._key = (mixed & _MASK32, mixed >> 32)
        self._rank, self._epoch = rank, epoch

    def _words(self, blocks):
        return _philox(blocks & np.uint64(_MASK32), blocks >> np.uint64(32), self._rank,
                       self._epoch, self._key)

    def bits(self, indices):
        indices = np.asarray(indices, dtype=np.uint64)
        words = self._words(indices // np.uint64(4))
        return np.take_along_axis(words, (indices % np.uint64(4)).astype(np.intp)[None], 0)[0]

    def uniform(self, indices):
        """Uniform in [0, 1), float64."""
        return (self.bits(indices) >> np.uint64(8)).astype(np.float64) * 2.0**-24

    def normal(self, indices):
        """Standard normal (Box and Muller), rounded to float32 as Assay's."""
        indices = np.asarray(indices, dtype=np.uint64)
        words = self._words(indices // np.uint64(2))
        odd = (indices % np.uint64(2)).astype(bool)
        u = (np.where(odd, words[2], words[0]).astype(np.float64) + 1) * 2.0**-32
        v = np.where(odd, words[3], words[1]).astype(np.float64) * 2.0**-32
        return (np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * v)).astype(np.float32)


def shuffled(seed, epoch, count):
    """The order in which one rank that is alone reads `count` samples in a 0-based epoch."""
    stream = Stream(seed, SHUFFLE, 0, epoch)
    positions = np.arange(count + 1, dtype=np.uint64)
    picks = (stream.bits(positions) * positions) >> np.uint64(32)
    order = list(range(count))
    for i in range(count, 1, -1):
        j = int(picks[i])
        order[i - 1], order[j] = order[j], order[i - 1]
    return order


class Initial:
    """The initial weights of a seed, tensor by tensor in the model's order."""

    def __init__(self, seed):
        self._stream, self._next = Stream(seed, INIT), 0

    def _indices(self, shape):
        count = int(np.prod(shape))
        self._next += count
        return np.arange(self._next - count, self._next, dtype=np.uint64)

    def uniform(self, shape, limit):
        values = limit * (2 * self._stream.uniform(self._indices(shape)) - 1)
        return values.astype(np.float32).reshape(shape)

    def normal(self, shape, deviation):
        values = deviation * self._stream.normal(self._indices(shape)).astype(np.float64)
        return values.astype(np.float32).reshape(shape)

    def constant(self, shape, value):
        self._indices(shape)
        return np.full(shape, value, dtype=np.float32)
