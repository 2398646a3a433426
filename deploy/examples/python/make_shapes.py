#!/usr/bin/env python3
"""Makes images with several labels each, for the round shapes-mini.

    python3 make_shapes.py shapes --train 4096 --eval 1024
    assay dataset import shapes --benchmark shapes

An image is noise with one to five patches on it. A patch has a texture and a colour, which make its
class; classes are drawn by Zipf's law, so that some are rare. The taxonomy has a class for each texture
above those of its colours, and an image has the labels of its patches and of what is above them.

    DIR/train/000000.img, DIR/validation/...    edge x edge x 3 uint8, then the labels as uint16,
                                                little-endian, rising
    DIR/taxonomy.json                           edge, classes, parent of each (-1: none), prior
"""

import argparse
import json
import pathlib

import numpy as np

TEXTURES = ["plain", "rows", "columns", "checks", "diagonal", "dots"]
COLOURS = {"red": (230, 40, 40), "green": (40, 200, 40), "blue": (50, 70, 235),
           "yellow": (230, 220, 40), "magenta": (220, 40, 220), "cyan": (40, 215, 215),
           "white": (245, 245, 245), "orange": (240, 140, 20)}


def is_inked(texture, y, x):
    return {"plain": y >= 0, "rows": y % 4 < 2, "columns": x % 4 < 2,
            "checks": (y // 2 + x // 2) % 2 == 0, "diagonal": (y + x) % 4 < 2,
            "dots": (y % 4 < 2) & (x % 4 < 2)}[texture]


def make_taxonomy(textures, colours, edge, seed):
    textures, colours = TEXTURES[:textures], list(COLOURS)[:colours]
    classes = textures + [f"{texture} {colour}" for texture in textures for colour in colours]
    leaves = np.arange(len(textures), len(classes))
    law = 1 / np.arange(1, len(leaves) + 1)
    prior = np.zeros(len(classes))
    prior[np.random.default_rng([seed, 0]).permutation(leaves)] = law / law.sum()
    parents = [-1] * len(textures) + [at // len(colours) for at in range(len(leaves))]
    return {"edge": edge, "classes": classes, "parents": parents, "prior": prior.tolist(),
            "seed": seed}


def make_image(taxonomy, random):
    edge = taxonomy["edge"]
    image = random.integers(0, 90, size=(edge, edge, 3))
    y, x = np.mgrid[:edge, :edge]
    labels = set()
    for _ in range(random.integers(1, 6)):
        label = int(random.choice(len(taxonomy["classes"]), p=taxonomy["prior"]))
        texture, colour = taxonomy["classes"][label].split()
        size = random.integers(edge // 4, edge // 2)
        top, left = random.integers(0, edge - size, size=2)
        inside = (y >= top) & (y < top + size) & (x >= left) & (x < left + size)
        image[inside] //= 4
        image[inside & is_inked(texture, y, x)] = COLOURS[colour]
        labels |= {label, taxonomy["parents"][label]}
    noise = random.normal(scale=12, size=image.shape)
    return np.clip(image + noise, 0, 255).astype(np.uint8), sorted(labels)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--train", type=int, default=4096, help="images to train on")
    parser.add_argument("--eval", type=int, default=1024, help="images to evaluate on")
    parser.add_argument("--edge", type=int, default=32, help="pixels of a side")
    parser.add_argument("--textures", type=int, default=6, choices=range(1, 7))
    parser.add_argument("--colours", type=int, default=8, choices=range(1, 9))
    parser.add_argument("--seed", type=int, default=0, help="another seed, other images")
    arguments = parser.parse_args()
    taxonomy = make_taxonomy(arguments.textures, arguments.colours, arguments.edge, arguments.seed)
    for number, (split, count) in enumerate([("train", arguments.train),
                                             ("validation", arguments.eval)]):
        folder = arguments.folder / split
        folder.mkdir(parents=True, exist_ok=True)
        for index in range(count):
            random = np.random.default_rng([arguments.seed, number + 1, index])
            image, labels = make_image(taxonomy, random)
            data = image.tobytes() + np.array(labels, dtype="<u2").tobytes()
            (folder / f"{index:06d}.img").write_bytes(data)
    (arguments.folder / "taxonomy.json").write_text(json.dumps(taxonomy, indent=1) + "\n")
    print(f"{len(taxonomy['classes'])} classes, {arguments.train} + {arguments.eval} images")


if __name__ == "__main__":
    main()
