"""Rows of DataFrames from the coordinator's messages: units in the names of columns, times in UTC,
and NaN for what is missing, never 0."""

from assay.v1 import resources_pb2

_NAN = float("nan")


def short_id(name: str) -> str:
    """e-42 of submissions/e-42."""
    return name.rpartition("/")[2]


def _optional(message, field):
    return getattr(message, field) if message.HasField(field) else _NAN


def _milliseconds(message, field):
    return getattr(message, field) / 1000 if message.HasField(field) else _NAN


def _time(message, field):
    """In nanoseconds since 1970."""
    stamp = getattr(message, field)
    return stamp.seconds * 10**9 + stamp.nanos if message.HasField(field) else None


def entry_row(entry) -> dict:
    spec = entry.spec
    has_rate = entry.HasField("throughput")
    return {
        "id": short_id(entry.name),
        "organization": spec.organization,
        "system": spec.system,
        "benchmark": spec.benchmark,
        "division": spec.division,
        "status": spec.status,
        "round": spec.round,
        "scaling": entry.scaling,
        "state": resources_pb2.Submission.State.Name(entry.state).lower(),
        "minutes": _optional(entry, "score_minutes"),
        "models_per_minute": entry.throughput.models_per_minute if has_rate else _NAN,
        "nodes": spec.node_count or _NAN,
        "runs": len(entry.runs),
        "is_imported": entry.is_imported,
        "is_mlperf_result": entry.is_mlperf_result,
        "submitter": entry.submitter,
        "created": _time(entry, "create_time"),
        "ended": _time(entry, "end_time"),
        "state_reason": entry.state_reason,
    }


def run_row(run) -> dict:
    has_times = run.HasField("run_start_ms") and run.HasField("run_stop_ms")
    return {
        "id": short_id(run.name),
        "entry": short_id(run.submission),
        "number": run.number,
        "state": resources_pb2.Run.State.Name(run.state).lower(),
        "minutes": (run.run_stop_ms - run.run_start_ms) / 60_000 if has_times else _NAN,
        "epochs": _optional(run, "epoch_count"),
        "quality": _optional(run, "quality"),
        "is_converged": run.is_converged if run.HasField("is_converged") else None,
        "is_compliant": run.is_compliant if run.HasField("is_compliant") else None,
        "global_batch_size": run.global_batch_size or _NAN,
        "instance_scale": run.instance_scale or _NAN,
        "staging_seconds": run.staging_ms / 1000 if run.HasField("staging_ms") else _NAN,
        "energy_joules": _optional(run, "energy_joules"),
        "energy_scope": run.energy_scope,
        "first_touch_assurance": run.touch_assurance,
        "first_touch_ms": _milliseconds(run, "touch_after_start_us"),
        "first_touch_error_ms": _milliseconds(run, "touch_error_us"),
        "seed": run.seed,
        "findings": len(run.findings),
        "time": run.run_start_ms * 10**6 if run.HasField("run_start_ms") else None,
        "state_reason": run.state_reason,
    }


def finding_row(finding) -> dict:
    return {
        "rule": finding.rule,
        "severity": resources_pb2.Finding.Severity.Name(finding.severity).lower(),
        "key": finding.key,
        "line": finding.line or _NAN,
        "expected": finding.expected,
        "found": finding.found,
        "remedy": finding.remedy,
    }


_UNIT_WORDS = {"min": "minutes", "s": "seconds", "J": "joules", "ms": "ms", "bytes": "bytes", "1/min": "per_minute",
               "samples": "samples"}


def query_name(column) -> str:
    """A column's name as the command line's files have it, which ends in its unit."""
    name = column.name.replace("(", "_").replace(")", "")
    word = _UNIT_WORDS.get(column.unit, "")
    return name if name.endswith(word) else f"{name}_{word}"


def query_row(columns, row) -> dict:
    """A row of an answer by its columns' names; what it lacks is NaN."""
    values = {}
    for column, value in zip(columns, row.values):
        kind = value.WhichOneof("value")
        found = getattr(value, kind) if kind else float("nan")
        if kind == "time":
            found = found.ToNanoseconds()
        elif kind == "texts":
            found = list(found.texts)
        values[query_name(column)] = found
    return values


def to_frame(rows, columns, times=(), index=None):
    """A DataFrame of `rows`, with these columns also where there is no row."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("DataFrames need pandas: pip install 'assay-client[pandas]'") from error
    frame = pandas.DataFrame(list(rows), columns=list(columns))
    for column in times:
        frame[column] = pandas.to_datetime(frame[column], unit="ns", utc=True)
    return frame if index is None else frame.set_index(index)


ENTRY_COLUMNS = tuple(entry_row(resources_pb2.Submission()))
RUN_COLUMNS = tuple(run_row(resources_pb2.Run()))
FINDING_COLUMNS = tuple(finding_row(resources_pb2.Finding()))
EPOCH_COLUMNS = ("epoch", "metric", "quality", "seconds", "epoch_seconds")
