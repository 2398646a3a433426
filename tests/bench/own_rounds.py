"""The rounds of ours in deploy/quickstart, for the scripts that train them seed by seed."""

import dataclasses
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclasses.dataclass(frozen=True)
class Round:
    name: str
    quality_key: str
    stop_at: float  # beyond the round's target, to see how training goes on
    epochs: int
    first_seed: int

    def submission(self):
        """The file that is submitted, parsed."""
        with open(ROOT / "deploy/quickstart" / f"{self.name}.toml", "rb") as file:
            return tomllib.load(file)

    def hyperparameters(self):
        return self.submission()["hyperparameters"]

    def is_done(self, quality):
        if self.quality_key == "eval_error":
            return quality <= self.stop_at
        return quality >= self.stop_at

    def seeds(self, count):
        return [self.first_seed + i for i in range(count)]


COSMOFLOW = Round("cosmoflow-mini", "eval_error", stop_at=0.30, epochs=8, first_seed=201)
DEEPCAM = Round("deepcam-mini", "eval_accuracy", stop_at=0.99, epochs=12, first_seed=301)
ROUNDS = {round.name: round for round in (COSMOFLOW, DEEPCAM)}
