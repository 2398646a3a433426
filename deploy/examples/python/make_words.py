#!/usr/bin/env python3
"""Makes a corpus of which the entropy is known, for the round words-mini.

    python3 make_words.py words --train 250000 --eval 65536
    assay dataset import words --benchmark words --train 250000 --eval 65536

The language: a dictionary of random words; each word belongs to one of a few kinds, and after a word
of kind k comes the i-th of kind k's own order of the dictionary with a probability of Zipf's law,
proportional to 1 / i. Words end with a space. Tokens are characters, so the entropy of a token is that
of a word, which is the same for all kinds, over the mean length of a word. No model can do better than
the perplexity exp(entropy); it stands in language.json with all that it is made of.

    DIR/train/tokens.bin, DIR/validation/tokens.bin    uint16, little-endian
    DIR/language.json                                  alphabet, words, kinds, orders, entropy
"""

import argparse
import json
import pathlib

import numpy as np

ALPHABET = " abcdefghijklmnopqrstuvwxyz"


def make_language(words, kinds, seed):
    random = np.random.default_rng([seed, 0])
    dictionary = []
    while len(dictionary) < words:
        letters = random.integers(1, len(ALPHABET), size=random.integers(2, 7))
        word = "".join(ALPHABET[letter] for letter in letters)
        if word not in dictionary:
            dictionary.append(word)
    law = 1 / np.arange(1, words + 1)
    law /= law.sum()
    return {"alphabet": ALPHABET, "words": dictionary, "probabilities": law.tolist(),
            "kinds": random.integers(kinds, size=words).tolist(),
            "orders": [random.permutation(words).tolist() for _ in range(kinds)], "seed": seed}


def entropy(language):
    """Nats for each token."""
    law, kinds = np.array(language["probabilities"]), language["kinds"]
    words = len(law)
    step = np.zeros((words, words))  # from a word to the next
    for word in range(words):
        step[word, language["orders"][kinds[word]]] = law
    share = np.full(words, 1 / words)
    for _ in range(1000):
        share = share @ step
    length = share @ [len(word) + 1 for word in language["words"]]
    return float(-(law @ np.log(law)) / length)


def make_tokens(language, count, random):
    law = np.array(language["probabilities"])
    spelt = [[ALPHABET.index(letter) for letter in word + " "] for word in language["words"]]
    tokens, word = [], 0
    while len(tokens) < count:
        for place in random.choice(len(law), size=4096, p=law):
            word = language["orders"][language["kinds"][word]][place]
            tokens += spelt[word]
    return np.array(tokens[:count], dtype="<u2")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--train", type=int, default=250_000, help="tokens to train on")
    parser.add_argument("--eval", type=int, default=65_536, help="tokens to evaluate on")
    parser.add_argument("--words", type=int, default=64, help="of the dictionary")
    parser.add_argument("--kinds", type=int, default=4, help="of words")
    parser.add_argument("--seed", type=int, default=0, help="another seed, another language")
    arguments = parser.parse_args()
    language = make_language(arguments.words, arguments.kinds, arguments.seed)
    language["nats_per_token"] = entropy(language)
    for number, (split, count) in enumerate([("train", arguments.train),
                                             ("validation", arguments.eval)]):
        folder = arguments.folder / split
        folder.mkdir(parents=True, exist_ok=True)
        random = np.random.default_rng([arguments.seed, number + 1])
        make_tokens(language, count, random).tofile(folder / "tokens.bin")
    (arguments.folder / "language.json").write_text(json.dumps(language, indent=1) + "\n")
    nats = language["nats_per_token"]
    print(f"entropy {nats:.4f} nats a token, perplexity {np.exp(nats):.4f}; "
          f"5 % more nats are perplexity {np.exp(1.05 * nats):.4f}")


if __name__ == "__main__":
    main()
