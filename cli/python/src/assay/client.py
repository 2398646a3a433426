"""The client. Everything blocks; a Client may be shared by threads."""

import dataclasses
import hashlib
import json
import re
import threading
import uuid

import grpc

from assay import certificate, config, frames, mllog, submission as submissions
from assay.errors import DataLoss, InvalidArgument, NotFound, Unavailable, from_rpc
from assay.v1 import admin_service_pb2, admin_service_pb2_grpc
from assay.v1 import history_service_pb2, history_service_pb2_grpc
from assay.v1 import resources_pb2
from assay.v1 import submission_service_pb2, submission_service_pb2_grpc

_MESSAGE_BYTES_MAX = 64 << 20  # as the coordinator's other clients
_PAGE_SIZE = 1000
_OPTIONS = (
    ("grpc.max_receive_message_length", _MESSAGE_BYTES_MAX),
    ("grpc.enable_http_proxy", 0),  # proxies are for the web, not for a facility's own daemons
    ("grpc.keepalive_time_ms", 15_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.max_reconnect_backoff_ms", 1_000),
)


@dataclasses.dataclass(frozen=True)
class Event:
    """What a node witnessed of a run. Times in microseconds since 1970: by the node, and by the
    coordinator when it had it. `record` is that of mlperf-log, if the line is one."""

    seq: int
    kind: str  # LOG_LINE, FIRST_TOUCH, FINDING, PROGRESS
    text: bytes
    line: int
    node_rank: int
    wall_us: int
    receive_us: int

    @property
    def record(self):
        return mllog.parse_line(self.text) if self.kind == "LOG_LINE" else None


def _named(collection: str, prefix: str, given: str) -> str:
    short = frames.short_id(given)
    if not re.fullmatch(rf"{prefix}-[0-9]+", short):
        raise InvalidArgument(f"'{given}' is no name of these: write {prefix}-42")
    return f"{collection}/{short}"


def _round_name(given: str) -> str:
    """hpc-1.0.0 of v1.0 and 1.0; any other name as it is."""
    version = re.fullmatch(r"(?:hpc[- ])?v?([0-9]+)\.([0-9]+)(?:\.([0-9]+))?", given)
    return f"hpc-{version[1]}.{version[2]}.{version[3] or 0}" if version else given


class Client:
    """A connection to one coordinator, with one token."""

    def __init__(self, endpoint: config.Endpoint, timeout: float = 60.0):
        """`timeout`: of each call, in seconds; a list is as many calls as it has pages."""
        self._endpoint = endpoint
        self._timeout = timeout
        # Over TCP the certificate says who asks.
        is_local = endpoint.target.startswith("unix:")
        self._metadata = (("authorization", f"Bearer {endpoint.token}"),) if is_local and endpoint.token else ()
        self._lock = threading.Lock()
        self._channel = None
        self._certificate = None

    def _connected(self):
        """The channel, whose certificate lasts a while yet."""
        with self._lock:
            if self._channel is not None and not (self._certificate and self._certificate.is_about_to_end()):
                return self._channel
            target = self._endpoint.target
            if target.startswith("unix:"):
                self._channel = grpc.insecure_channel(target, _OPTIONS)
            else:
                self._certificate = certificate.exchange(self._endpoint, self._timeout)
                credentials = grpc.ssl_channel_credentials(
                    self._endpoint.ca_pem, self._certificate.key_pem, self._certificate.certificate_pem
                )
                self._channel = grpc.secure_channel(target, credentials, _OPTIONS)
            return self._channel

    @property
    def _submissions(self):
        return submission_service_pb2_grpc.SubmissionServiceStub(self._connected())

    @property
    def _admin(self):
        return admin_service_pb2_grpc.AdminServiceStub(self._connected())

    @property
    def _history(self):
        return history_service_pb2_grpc.HistoryServiceStub(self._connected())

    @classmethod
    def from_context(cls, context=None, *, server=None, socket=None, ca=None, token=None, token_file=None, timeout=60.0):
        """As the command line finds its coordinator: by what is given here, ASSAY_SERVER and the
        like, the configuration files, and last what listens on this machine."""
        given = dict(context=context, server=server, socket=socket, ca=ca, token=token, token_file=token_file)
        return cls(config.resolve(given), timeout)

    def close(self):
        with self._lock:
            if self._channel is not None:
                self._channel.close()
            self._channel = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def version(self) -> str:
        """The coordinator's."""
        return self._call(self._admin.GetServerInfo, admin_service_pb2.GetServerInfoRequest()).version

    def entries(self, filter: str | None = None, **equal):
        """Entries, newest first, that the caller may see. `filter`: as of `query`, of which this is the
        table of entries with its usual columns. `equal`: organization, system, benchmark, division,
        round ("v1.0" is hpc-1.0.0) or state, as the coordinator compares them."""
        if filter is not None:
            terms = [f"({filter})"] if filter.strip() else []
            terms += [f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in equal.items()]
            return self.query(" ".join(terms)).set_index("id")
        if "round" in equal:
            equal["round"] = _round_name(equal["round"])
        if "state" in equal:
            equal["state"] = equal["state"].upper()
        request = self._request(submission_service_pb2.ListSubmissionsRequest, equal)
        rows = map(frames.entry_row, self._pages(self._submissions.ListSubmissions, request, "submissions"))
        return frames.to_frame(rows, frames.ENTRY_COLUMNS, ("created", "ended"), "id")

    def query(self, filter="", *, kind="entry", columns=(), order_by="", group_by=(), aggregates=(), limit=None):
        """Rows that match a filter ("benchmark=cosmoflow minutes<10", as `assay help query` tells it),
        of entries, runs, findings, workers or hyperparameters ("entry", "run", ...), in the order of
        the coordinator. Names of columns end in their unit. With group_by or aggregates ("count",
        "p50(minutes)") rows are groups."""
        kinds = history_service_pb2.QueryResultsRequest.Kind
        if kind.upper() not in kinds.keys() or kind.upper() == "KIND_UNSPECIFIED":
            raise InvalidArgument(f"there is no kind '{kind}'; kinds: entry, run, finding, worker, hyperparameter")
        request = history_service_pb2.QueryResultsRequest(
            kind=kinds.Value(kind.upper()), filter=filter, order_by=order_by, columns=columns, group_by=group_by,
            aggregates=aggregates, page_size=_PAGE_SIZE if limit is None else max(1, min(limit, _PAGE_SIZE)),
        )
        rows, described = [], []
        while True:
            reply = self._call(self._history.QueryResults, request)
            described = described or list(reply.columns)
            rows.extend(frames.query_row(described, row) for row in reply.rows)
            if not reply.next_page_token or (limit is not None and len(rows) >= limit):
                break
            request.page_token = reply.next_page_token
        names = [frames.query_name(column) for column in described]
        times = [frames.query_name(c) for c in described if c.type == history_service_pb2.QueryColumn.TIME]
        return frames.to_frame(rows[:limit], names, tuple(times))

    def runs(self, entry: str | None = None):
        """Runs of an entry ("e-42"), in order; or all that the caller may see, newest first."""
        name = "" if entry is None else _named("submissions", "e", entry)
        request = submission_service_pb2.ListRunsRequest(submission=name)
        rows = map(frames.run_row, self._pages(self._submissions.ListRuns, request, "runs"))
        return frames.to_frame(rows, frames.RUN_COLUMNS, ("time",), "id")

    def findings(self, run: str):
        """What the rules say of a run."""
        return frames.to_frame(map(frames.finding_row, self._run(run).findings), frames.FINDING_COLUMNS)

    def hyperparameters(self, entry: str) -> dict:
        """Of an entry, by their mlperf-log keys."""
        return {h.key: json.loads(h.json_value) for h in self._entry(entry).spec.hyperparameters}

    def submission(self, entry: str) -> dict:
        """What was submitted, with the names of a submission file: change it and `submit` it again."""
        return submissions.from_spec(self._entry(entry).spec)

    def submit(self, submission: dict) -> str:
        """Submits an entry of the native trainer, whose keys are those of a submission file
        (docs/submitter.md), `run_timeout_s` in place of run_timeout, and returns its id.
        InvalidArgument or FailedPrecondition says which rule is against it. An answer that is lost
        on the way makes no second entry."""
        request = submission_service_pb2.CreateSubmissionRequest(
            request_id=str(uuid.uuid4()), spec=submissions.to_spec(submission)
        )
        return frames.short_id(self._call_again(self._submissions.CreateSubmission, request).name)

    def note(self, entry: str, text: str):
        """Says something about an entry, open or ended, for whoever sees it."""
        request = submission_service_pb2.NoteSubmissionRequest(
            name=_named("submissions", "e", entry), request_id=str(uuid.uuid4()), text=text
        )
        self._call_again(self._submissions.NoteSubmission, request)

    def log(self, run: str) -> bytes:
        """The log, byte for byte; DataLoss if it is not what its digest says."""
        found = self._run(run)
        artifact = self._result_of(found)
        if artifact is None:
            raise NotFound(f"{frames.short_id(found.name)} has no log yet: it is kept when its run has ended")
        request = submission_service_pb2.DownloadArtifactRequest(sha256=artifact.sha256)
        log = b"".join(chunk.data for chunk in self._stream(self._submissions.DownloadArtifact, request, self._timeout))
        if hashlib.sha256(log).hexdigest() != artifact.sha256:
            raise DataLoss(f"{artifact.file_name} of {frames.short_id(found.name)} has come damaged: its SHA-256 is another")
        return log

    def epochs(self, run: str):
        """Each evaluation of a run: its epoch, quality, and seconds since run_start."""
        rows = mllog.epochs(self.log(run))
        return frames.to_frame(rows, frames.EPOCH_COLUMNS)

    def watch(self, run: str, after_seq: int = 0, follow: bool = True):
        """Yields events of rank 0's node as they are committed, each once, until the run has ended;
        without `follow` until the last one stored. A coordinator that is away is waited for. Of a
        run that nobody watched, as an imported one, the lines of its log, without stamps."""
        name = _named("runs", "r", run)
        seen_seq = after_seq
        while True:
            request = submission_service_pb2.WatchRunEventsRequest(run=name, after_seq=seen_seq, follow=follow)
            try:
                is_reconnect = seen_seq > after_seq
                for event in self._stream(self._submissions.WatchRunEvents, request, None, is_reconnect):
                    seen_seq = event.seq
                    kind = resources_pb2.RunEvent.Kind.Name(event.kind)
                    yield Event(
                        event.seq, kind, event.text, event.line, event.node_rank, event.wall_us, event.receive_us
                    )
                break
            except Unavailable:
                if seen_seq == after_seq:
                    raise
        if seen_seq == after_seq:
            yield from self._stored_lines(name, after_seq)

    def _stored_lines(self, name: str, after_seq: int):
        run = self._run(name)
        if run.event_count > 0 or self._result_of(run) is None:
            return
        for number, line in enumerate(self.log(name).removesuffix(b"\n").split(b"\n"), start=1):
            if number > after_seq:
                yield Event(number, "LOG_LINE", line, number, 0, 0, 0)

    @staticmethod
    def _result_of(run):
        name = f"result_{run.number}.txt"
        return next((artifact for artifact in run.artifacts if artifact.file_name == name), None)

    def compare(self, one: str, other: str):
        """Where two entries differ: settings, hyperparameters and scores, with the ratio of numbers."""
        rows = []
        sides = [self._comparable(name) for name in (one, other)]
        for key in dict.fromkeys([*sides[0], *sides[1]]):
            values = [side.get(key) for side in sides]
            if values[0] == values[1]:
                continue
            are_numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)
            ratio = values[1] / values[0] if are_numbers and values[0] else float("nan")
            rows.append({"key": key, one: values[0], other: values[1], "ratio": ratio})
        return frames.to_frame(rows, ("key", one, other, "ratio"), index="key")

    def _comparable(self, name: str) -> dict:
        entry = self._entry(name)
        row = frames.entry_row(entry)
        settings = ("organization", "system", "benchmark", "division", "round", "scaling", "nodes", "minutes")
        facts = {key: row[key] for key in settings if row[key] == row[key]}  # NaN: not known
        facts["rules_digest"] = entry.rules_digest
        for hyperparameter in entry.spec.hyperparameters:
            facts[f"hyperparameters.{hyperparameter.key}"] = json.loads(hyperparameter.json_value)
        return facts

    def _entry(self, given: str):
        request = submission_service_pb2.GetSubmissionRequest(name=_named("submissions", "e", given))
        return self._call(self._submissions.GetSubmission, request)

    def _run(self, given: str):
        request = submission_service_pb2.GetRunRequest(name=_named("runs", "r", given))
        return self._call(self._submissions.GetRun, request)

    @staticmethod
    def _request(kind, members: dict):
        known = [field.name for field in kind.DESCRIPTOR.fields if not field.name.startswith("page_")]
        for name in members:
            if name not in known:
                raise InvalidArgument(f"there is no field '{name}'; fields: {', '.join(known)}")
        return kind(**members)

    def _call(self, method, request):
        try:
            return method(request, metadata=self._metadata, timeout=self._timeout)
        except grpc.RpcError as error:
            raise from_rpc(error) from error

    def _call_again(self, method, request):
        """Of what its request_id makes safe to repeat: once more if the answer does not come."""
        try:
            return self._call(method, request)
        except Unavailable:
            return self._call(method, request)

    def _stream(self, method, request, timeout, wait_for_ready=False):
        try:
            yield from method(request, metadata=self._metadata, timeout=timeout, wait_for_ready=wait_for_ready)
        except grpc.RpcError as error:
            raise from_rpc(error) from error

    def _pages(self, method, request, member):
        request.page_size = _PAGE_SIZE
        while True:
            reply = self._call(method, request)
            yield from getattr(reply, member)
            if not reply.next_page_token:
                return
            request.page_token = reply.next_page_token
