"""Reads an Assay coordinator: entries, runs, epochs and logs, as pandas DataFrames.

    import assay
    client = assay.Client.from_context()
    client.entries(benchmark="cosmoflow", round="v1.0")
"""

from assay.client import Client, Event
from assay.errors import (
    Aborted,
    AssayError,
    ConfigError,
    DataLoss,
    DeadlineExceeded,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    Unauthenticated,
    Unavailable,
)

__all__ = [
    "Aborted",
    "AssayError",
    "Client",
    "ConfigError",
    "DataLoss",
    "DeadlineExceeded",
    "Event",
    "FailedPrecondition",
    "InvalidArgument",
    "NotFound",
    "PermissionDenied",
    "ResourceExhausted",
    "Unauthenticated",
    "Unavailable",
]
