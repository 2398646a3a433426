"""Records of mlperf-log, as they stand in a run's log (":::MLLOG {...}")."""

import json

_TOKEN = b":::MLLOG "


def parse_line(line: bytes) -> dict | None:
    """The record of one line; None for a line that has none, or a damaged one."""
    _, token, text = line.partition(_TOKEN)
    if not token:
        return None
    try:
        record = json.loads(text)
    except (UnicodeDecodeError, json.JSONDecodeError):
        return None
    return record if isinstance(record, dict) and "key" in record and "time_ms" in record else None


def records(log: bytes):
    """The records of a log, in its order."""
    for line in log.splitlines():
        record = parse_line(line)
        if record is not None:
            yield record


def _epoch_of(record: dict):
    metadata = record.get("metadata")
    return metadata.get("epoch_num") if isinstance(metadata, dict) else None


# By which benchmarks say how good a network is: eval_error falls (CosmoFlow), eval_accuracy rises.
QUALITY_KEYS = ("eval_error", "eval_accuracy")


def epochs(log: bytes) -> list[dict]:
    """One row for each evaluation: epoch, metric, quality, seconds since run_start, and how long
    the epoch took (None where the log does not say)."""
    run_start = None
    begun, took, rows = {}, {}, []
    for record in records(log):
        key, time_ms, epoch = record["key"], record["time_ms"], _epoch_of(record)
        if key == "run_start" and run_start is None:
            run_start = time_ms
        elif key == "epoch_start":
            begun[epoch] = time_ms
        elif key == "epoch_stop" and epoch in begun:
            took[epoch] = (time_ms - begun[epoch]) / 1000
        elif key in QUALITY_KEYS:
            rows.append(
                {
                    "epoch": epoch,
                    "metric": key,
                    "quality": record.get("value"),
                    "seconds": None if run_start is None else (time_ms - run_start) / 1000,
                }
            )
    for row in rows:
        row["epoch_seconds"] = took.get(row["epoch"])
    return rows
