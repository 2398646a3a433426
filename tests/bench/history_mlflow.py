"""The questions of history_bench, as far as MLflow's tracking store has words for them, asked of a
store of as many runs on the same machine: a page of 50, as its clients get it, without the wire.

  python3 -m venv V && V/bin/pip install mlflow-skinny sqlalchemy alembic
  V/bin/python tests/bench/history_mlflow.py [DIRECTORY] [RUNS]     (100000 runs)

Rows are put into MLflow's own tables by its own models. What it cannot be asked is listed at the end.
"""
import os
import random
import statistics
import sys
import time
import warnings

warnings.filterwarnings("ignore")

from mlflow.entities import ViewType  # noqa: E402
from mlflow.store.tracking.dbmodels import models  # noqa: E402
from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore  # noqa: E402
from sqlalchemy import insert  # noqa: E402

RUNS_OF_ENTRY = 40
REPETITIONS = 7
BLOCK = 2000

QUESTIONS = [
    ("newest runs", "", ["attributes.start_time DESC"]),
    ("benchmark and round", "params.benchmark = 'cosmoflow' and params.round = 'hpc-2.0.0'", []),
    ("wildcard", "params.system like 'system-1%' and params.converged = 'true'", []),
    ("fastest", "params.converged = 'true'", ["metrics.minutes ASC"]),
    ("largest quality last", "", ["metrics.quality DESC", "attributes.start_time ASC"]),
    ("hyperparameter", "metrics.global_batch_size > 1024 and params.opt_name = 'lamb'", []),
    ("finding", "tags.finding = 'R-HP-004'", []),
    ("time", "attributes.start_time >= 1546300800000 and attributes.start_time < 1551398400000", []),
    ("one entry", "params.entry = 'e-77'", []),
]


def rows_of(index):
    """A run with as much as history_bench gives it."""
    entry = random.Random(index // RUNS_OF_ENTRY)
    run = random.Random(-1 - index)
    name = f"{index:032x}"
    start = 1_500_000_000_000 + run.randrange(2_000_000_000) * 90
    length = 60_000 + run.randrange(20_000_000)
    base = {"run_uuid": name, "name": name, "source_type": "LOCAL", "status": "FINISHED",
            "start_time": start, "end_time": start + length, "lifecycle_stage": "active",
            "experiment_id": 0, "artifact_uri": ".", "user_id": "bench"}
    params = {"organization": f"organization-{entry.randrange(25)}",
              "system": f"system-{entry.randrange(60)}",
              "benchmark": entry.choice(["cosmoflow", "deepcam", "openfold"]),
              "round": f"hpc-{entry.randrange(4)}.0.0", "entry": f"e-{index // RUNS_OF_ENTRY + 1}",
              "opt_name": entry.choice(["sgd", "lamb"]),
              "converged": "true" if run.randrange(10) else "false"}
    metrics = {"minutes": length / 60_000, "quality": 0.12 + run.randrange(1000) * 1e-6,
               "epochs": 15 + run.randrange(80),
               "global_batch_size": 256 << entry.randrange(6)}
    finding = "R-TOUCH-001" if run.randrange(50) else "R-HP-004"
    return base, params, metrics, finding


def fill(store, count):
    begin = time.monotonic()
    for first in range(0, count, BLOCK):
        runs, params, metrics, tags = [], [], [], []
        for index in range(first, min(count, first + BLOCK)):
            base, of_params, of_metrics, finding = rows_of(index)
            name = base["run_uuid"]
            runs.append(base)
            params += [{"run_uuid": name, "key": k, "value": v} for k, v in of_params.items()]
            metrics += [{"run_uuid": name, "key": k, "value": v, "timestamp": base["end_time"],
                         "step": 0, "is_nan": False} for k, v in of_metrics.items()]
            tags.append({"run_uuid": name, "key": "finding", "value": finding})
        with store.ManagedSessionMaker() as session:
            for model, rows in ((models.SqlRun, runs), (models.SqlParam, params),
                                (models.SqlMetric, metrics), (models.SqlLatestMetric, metrics),
                                (models.SqlTag, tags)):
                session.execute(insert(model), rows)
    print(f"made {count} runs in {time.monotonic() - begin:.0f} s")


def ask(store, name, words, order):
    first, following = [], []
    for _ in range(REPETITIONS):
        token = None
        for times in (first, following):
            begin = time.monotonic()
            page = store.search_runs(["0"], words, ViewType.ACTIVE_ONLY, 50, order, token)
            times.append((time.monotonic() - begin) * 1000)
            token = page.token
            if token is None:
                break
    line = f"{name:24s} first page {statistics.median(first):7.1f} ms ({max(first):.1f})"
    if following:
        line += f"  next {statistics.median(following):7.1f} ms ({max(following):.1f})"
    print(line, flush=True)


def main():
    directory = sys.argv[1] if len(sys.argv) > 1 else "/tmp/history_mlflow"
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, "mlflow.db")
    is_new = not os.path.exists(path)
    store = SqlAlchemyStore(f"sqlite:///{path}", directory)
    if is_new:
        fill(store, count)
    print("load average", os.getloadavg()[0])
    for name, words, order in QUESTIONS:
        ask(store, name, words, order)
    print("load average", os.getloadavg()[0])
    print("cannot be asked: OR; NOT of a wildcard; how many match; groups, counts, means, "
          "percentiles; findings or entries as rows")


if __name__ == "__main__":
    main()
