"""What goes wrong, by kind: the coordinator's sentence, with the rule that it names."""

import re

import grpc

_RULE = re.compile(r"\bR-[A-Z]+-\d{3}\b")


class AssayError(Exception):
    """Anything that the coordinator or this client refuses or fails at.

    `rule` is the first rule that the message names, such as "R-HP-004", or None.
    """

    @property
    def rule(self):
        found = _RULE.search(str(self))
        return None if found is None else found.group()


class ConfigError(AssayError):
    """A setting is missing, contradicts another, or its file is damaged."""


class InvalidArgument(AssayError):
    """The question is none that can be answered."""


class NotFound(AssayError):
    """There is no such entry, run or artifact, or it is hidden from the caller."""


class PermissionDenied(AssayError):
    """The caller's role does not allow it."""


class Unauthenticated(AssayError):
    """The token is missing, unknown, or has expired."""


class FailedPrecondition(AssayError):
    """Not in the state that it is in."""


class ResourceExhausted(AssayError):
    """A limit was reached."""


class Aborted(AssayError):
    """Somebody else was faster."""


class Unavailable(AssayError):
    """The coordinator cannot be reached at the moment."""


class DeadlineExceeded(AssayError):
    """It took longer than `timeout`."""


class DataLoss(AssayError):
    """What came is not what its digest says."""


_KINDS = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidArgument,
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.PERMISSION_DENIED: PermissionDenied,
    grpc.StatusCode.UNAUTHENTICATED: Unauthenticated,
    grpc.StatusCode.FAILED_PRECONDITION: FailedPrecondition,
    grpc.StatusCode.RESOURCE_EXHAUSTED: ResourceExhausted,
    grpc.StatusCode.ABORTED: Aborted,
    grpc.StatusCode.UNAVAILABLE: Unavailable,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceeded,
    grpc.StatusCode.DATA_LOSS: DataLoss,
}


_HTTP_KINDS = {
    400: InvalidArgument,
    401: Unauthenticated,
    403: PermissionDenied,
    404: NotFound,
    412: FailedPrecondition,
    429: ResourceExhausted,
    503: Unavailable,
}


def kind_of_http(status: int) -> type[AssayError]:
    return _HTTP_KINDS.get(status, AssayError)


def from_rpc(error: grpc.RpcError) -> AssayError:
    return _KINDS.get(error.code(), AssayError)(error.details() or str(error.code()))
