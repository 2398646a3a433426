"""Submissions as dictionaries, with the names that submission files have (docs/submitter.md)."""

import difflib
import json

from google.protobuf import duration_pb2

from assay.errors import InvalidArgument
from assay.v1 import resources_pb2

# Key of a file: its field, and the type of its value.
_KEYS = {
    "round": ("round", str),
    "benchmark": ("benchmark", str),
    "division": ("division", str),
    "organization": ("organization", str),
    "system": ("system", str),
    "dataset": ("dataset", str),
    "nodes": ("node_count", int),
    "ranks_per_node": ("ranks_per_node", int),
    "runs": ("run_count", int),
    "metric": ("metric", str),
    "instances": ("run_count", int),
    "backend": ("backend", str),
    "epochs_max": ("epoch_count_max", int),
    "status": ("status", str),
    "staging": ("staging", str),
    "fleet": ("fleet", str),
    "allow_preemptible": ("allow_preemptible", bool),
    "minutes_per_run": ("minutes_per_run", int),
    "replacements": ("replacement_count_max", int),
}
_TABLES = ("hyperparameters", "labels")
_SECONDS = "run_timeout_s"


def _unknown(key: str) -> InvalidArgument:
    if key in ("workload", "borrowing"):
        return InvalidArgument(f"'{key}' is not submitted from here: write a file and use 'assay submit'")
    known = [*_KEYS, *_TABLES, _SECONDS]
    near = difflib.get_close_matches(key, known, 1)
    return InvalidArgument(f"unknown key '{key}'; " + (f"write {near[0]}" if near else "known: " + ", ".join(known)))


def to_spec(submission: dict) -> resources_pb2.SubmissionSpec:
    """InvalidArgument for a key that there is not, or a value of another type. What the rules say is
    the coordinator's to judge."""
    spec = resources_pb2.SubmissionSpec()
    for key, value in submission.items():
        if key in _KEYS:
            field, kind = _KEYS[key]
            if type(value) is not kind:
                raise InvalidArgument(f"'{key}' must be of type {kind.__name__}, not {type(value).__name__}: {value!r}")
            try:
                setattr(spec, field, value)
            except ValueError as error:
                raise InvalidArgument(f"'{key}': {error}") from error
        elif key == _SECONDS:
            spec.run_timeout.CopyFrom(duration_pb2.Duration(seconds=int(value)))
        elif key == "labels":
            spec.worker_labels.update(value)
        elif key == "hyperparameters":
            for name, setting in value.items():
                spec.hyperparameters.add(key=name, json_value=json.dumps(setting, allow_nan=False))
        else:
            raise _unknown(key)
    return spec


def from_spec(spec: resources_pb2.SubmissionSpec) -> dict:
    """What `to_spec` would make the spec of; without what is not set."""
    if spec.WhichOneof("workload") == "command" or spec.HasField("borrowing"):
        raise InvalidArgument("an entry of a program, or with borrowed hyperparameters, is submitted by 'assay submit'")
    submission = {}
    for key, (field, _) in _KEYS.items():
        if key in ("runs", "instances") and (key == "instances") != (spec.metric == "throughput"):
            continue
        value = spec.trainer.backend if key == "backend" else getattr(spec, field)
        if value:
            submission[key] = value
    if spec.run_timeout.seconds:
        submission[_SECONDS] = spec.run_timeout.seconds
    if spec.worker_labels:
        submission["labels"] = dict(spec.worker_labels)
    submission["hyperparameters"] = {h.key: json.loads(h.json_value) for h in spec.hyperparameters}
    return submission
