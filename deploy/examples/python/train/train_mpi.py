"""The program of train.py with MPI, under srun or mpirun: gradients are summed by MPI_Allreduce.

Where one rank fails, all shall: MPI does not notice by itself that a Python program has ended.
"""

import sys
import traceback

import numpy as np
from mpi4py import MPI  # this import is MPI_Init

from contract import run, variable
from train import Regression


class Gang:
    """All ranks of the run, which the launcher has started."""

    def __init__(self):
        self.world = MPI.COMM_WORLD
        self.rank, self.size = self.world.rank, self.world.size
        if self.size != variable("WORLD_SIZE", int):
            raise RuntimeError(f"MPI has found {self.size} ranks: it was built for another launcher")

    def sum(self, values):
        """The element-wise sum of every rank's array, on every rank."""
        values = np.array(values, dtype=np.float64)
        total = np.empty_like(values)
        self.world.Allreduce(values, total)
        return total

    def wait(self):
        self.world.Barrier()


def main():
    try:
        run(Regression, Gang, lower_is_better=True)
    except Exception:
        traceback.print_exc()
        sys.stderr.flush()
        MPI.COMM_WORLD.Abort(1)


if __name__ == "__main__":
    main()
