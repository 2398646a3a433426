"""The Python client against a coordinator with the published round v0.7; what it says is held
against what the command line says. Environment: ASSAY, the command line's path; NOTEBOOK, one to be
executed, and WATCHED, an entry whose runs go on, or both empty; besides what the command line needs to find its coordinator."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import grpc
import pandas

import assay
from assay import config, mllog


def command(*arguments):
    return subprocess.run([os.environ["ASSAY"], *arguments], check=True, capture_output=True).stdout


def items(*arguments):
    return json.loads(command(*arguments, "--json"))["items"]


class ClientTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.client = assay.Client.from_context()
        cls.entries = cls.client.entries(round="v0.7")
        cls.runs = cls.client.runs()
        cls.runs = cls.runs[cls.runs.entry.isin(cls.entries.index)]

    @classmethod
    def tearDownClass(cls):
        cls.client.close()

    def test_entries_are_those_of_the_command_line(self):
        wanted = {entry["id"]: entry for entry in items("query", "round=v0.7")}
        self.assertEqual(list(self.entries.index), list(wanted))
        for name, entry in self.entries.iterrows():
            self.assertEqual(entry.system, wanted[name]["system"])
            self.assertEqual(entry.state, wanted[name]["state"])
            self.assertAlmostEqual(entry.minutes, wanted[name]["score_minutes"], places=6)
        self.assertEqual(str(self.entries.created.dt.tz), "UTC")
        self.assertTrue(self.entries.models_per_minute.isna().all(), "missing is NaN, never 0")

    def test_the_coordinator_filters(self):
        found = self.client.entries(benchmark="deepcam", division="closed", state="valid")
        self.assertEqual(set(found.index), {e["id"] for e in items("query", "benchmark=deepcam", "division=closed")})
        self.assertTrue(self.client.entries(system="none").empty)
        self.assertEqual(list(self.client.entries(system="none").columns), list(self.entries.columns))

    def test_runs_and_their_logs(self):
        self.assertEqual(len(self.runs), 135)
        entry = self.entries.index[0]
        runs = self.client.runs(entry)
        self.assertEqual(list(runs.index), [run["id"] for run in items("run", "list", "--entry", entry)])
        self.assertEqual(list(runs.number), sorted(runs.number))
        log = self.client.log(runs.index[0])
        self.assertEqual(log, command("logs", runs.index[0]))
        self.assertEqual(b"\n".join(event.text for event in self.client.watch(runs.index[0])) + b"\n", log)

    def test_a_run_is_watched_while_it_goes_on(self):
        entry = os.environ["WATCHED"]
        if not entry:
            self.skipTest("of one that goes on")
        run = self.client.runs(entry).index[0]
        events = list(self.client.watch(run))
        self.assertEqual([event.seq for event in events], list(range(1, len(events) + 1)))
        self.assertEqual({event.kind for event in events} - {"PROGRESS", "FINDING"}, {"LOG_LINE", "FIRST_TOUCH"})
        lines = [event.text for event in events if event.kind == "LOG_LINE"]
        self.assertEqual(b"\n".join(lines) + b"\n", self.client.log(run))
        self.assertGreater(min(event.receive_us for event in events), 1.7e15)

    def test_an_entry_is_submitted_again_with_another_value(self):
        watched = os.environ["WATCHED"]
        if not watched:
            self.skipTest("reviewers submit nothing")
        submission = self.client.submission(watched)
        submission["hyperparameters"]["opt_base_learning_rate"] = 0.02
        entry = self.client.submit(submission)
        try:
            self.assertEqual(self.client.submission(entry), submission)
            self.assertEqual(list(self.client.compare(watched, entry).index.drop("minutes", errors="ignore")),
                             ["hyperparameters.opt_base_learning_rate"])
            self.client.note(entry, "twice the rate")
            shown = json.loads(command("entry", "show", entry, "--json"))
            self.assertEqual([note["text"] for note in shown["notes"]], ["twice the rate"])
        finally:
            command("cancel", entry)
        submission["dataset"] = "none"
        with self.assertRaisesRegex(assay.AssayError, "none"):
            self.client.submit(submission)
        with self.assertRaisesRegex(assay.InvalidArgument, "unknown key 'node'; write nodes"):
            self.client.submit({"node": 2})
        with self.assertRaisesRegex(assay.InvalidArgument, "'nodes' must be of type int, not str"):
            self.client.submit({"nodes": "2"})

    def test_questions_have_the_answers_of_the_command_line(self):
        filter = "round=v0.7 converged=true"
        found = self.client.query(filter, kind="run", columns=["id", "minutes"], order_by="minutes")
        wanted = items("query", filter, "--kind", "run", "--columns", "id,minutes", "--order-by", "minutes")
        self.assertEqual(list(found.id), [row["id"] for row in wanted])
        self.assertEqual(list(found.filter(like="minutes").iloc[:, 0]), [row["minutes"] for row in wanted])
        groups = self.client.query("round=v0.7", group_by=["benchmark"], aggregates=["count"])
        wanted = items("query", "round=v0.7", "--group-by", "benchmark", "--aggregate", "count")
        self.assertEqual(list(groups["count"]), [row["count"] for row in wanted])
        with self.assertRaisesRegex(assay.InvalidArgument, "colour"):
            self.client.query("colour=red")

    def test_epochs_end_where_the_run_did(self):
        for name, run in self.runs.groupby("entry").head(1).iterrows():
            epochs = self.client.epochs(name)
            self.assertGreater(len(epochs), 0, name)
            self.assertTrue(epochs.seconds.is_monotonic_increasing, name)
            self.assertIn(run.quality, list(epochs.quality), name)

    def test_findings_name_rules(self):
        for finding in self.client.findings(self.runs.index[0]).itertuples():
            self.assertRegex(finding.rule, r"^R-[A-Z]+-\d{3}$")
            self.assertIn(finding.severity, ("warning", "error"))

    def test_entries_are_compared_by_what_differs(self):
        one, other = self.entries[self.entries.benchmark == "cosmoflow"].index[:2]
        differences = self.client.compare(one, other)
        self.assertAlmostEqual(
            differences.loc["minutes", "ratio"], self.entries.minutes[other] / self.entries.minutes[one]
        )
        self.assertNotIn("benchmark", differences.index)
        self.assertTrue(self.client.compare(one, one).empty)

    def test_what_cannot_be_answered_is_named(self):
        with self.assertRaisesRegex(assay.NotFound, "e-999"):
            self.client.hyperparameters("e-999")
        with self.assertRaisesRegex(assay.InvalidArgument, "no field 'colour'; fields: organization"):
            self.client.entries(colour="red")
        with self.assertRaisesRegex(assay.InvalidArgument, "unknown state"):
            self.client.entries(state="fine")
        with self.assertRaisesRegex(assay.InvalidArgument, "write r-42"):
            self.client.log("e-1")

    def test_a_stranger_is_told_so(self):
        endpoint = config.resolve({})
        if endpoint.target.startswith("unix:"):
            self.skipTest("sockets ask for no token")
        stranger = assay.Client(config.Endpoint(endpoint.target, endpoint.ca_pem, "assay_" + "a" * 32))
        with self.assertRaises(assay.Unauthenticated):
            stranger.entries()

    def test_nobody_there(self):
        with self.assertRaises(assay.Unavailable):
            assay.Client.from_context(socket="/nowhere/assayd.sock", timeout=5).entries()


class ConfigTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        (self.folder / ".git").mkdir()
        (self.folder / "ca.crt").write_text("PEM")
        self.user = self.folder / "config" / "assay" / "config.toml"
        self.user.parent.mkdir(parents=True)
        self.environment = {"XDG_CONFIG_HOME": str(self.folder / "config"), "XDG_RUNTIME_DIR": str(self.folder)}

    def resolve(self, **given):
        return config.resolve(given, self.environment, self.folder)

    def test_what_is_nearer_counts(self):
        self.user.write_text('server = "user:1"\nca = "ca.crt"\ntoken = "mine"\n')
        self.assertEqual(self.resolve(), config.Endpoint("user:1", b"PEM", "mine"))
        (self.folder / "assay.toml").write_text('server = "project:1"\n')
        self.assertEqual(self.resolve().target, "project:1")
        self.environment["ASSAY_SERVER"] = "variable:1"
        self.assertEqual(self.resolve().target, "variable:1")
        self.assertEqual(self.resolve(socket="run.sock").target, f"unix:{self.folder}/run.sock")

    def test_a_context_is_a_coordinator_by_name(self):
        self.user.write_text('[contexts.prod]\nserver = "prod:1"\nca = "ca.crt"\n')
        self.assertEqual(self.resolve(context="prod").target, "prod:1")
        with self.assertRaisesRegex(assay.ConfigError, "no context 'test'; known are: prod"):
            self.resolve(context="test")

    def test_mistakes_are_named(self):
        self.user.write_text('sever = "a:1"\n')
        with self.assertRaisesRegex(assay.ConfigError, "config.toml: unknown key 'sever'; known are context, server"):
            self.resolve()
        self.user.write_text("")
        (self.folder / "assay.toml").write_text('token = "secret"\n')
        with self.assertRaisesRegex(assay.ConfigError, "a secret and this file is shared"):
            self.resolve()
        (self.folder / "assay.toml").write_text("")
        with self.assertRaisesRegex(assay.ConfigError, "both say where"):
            self.resolve(server="a:1", socket="b")
        with self.assertRaisesRegex(assay.ConfigError, "no CA certificate for a:1"):
            self.resolve(server="a:1")
        with self.assertRaisesRegex(assay.Unavailable, "start a private one with 'assay dev'"):
            self.resolve()


class LogTest(unittest.TestCase):
    def test_what_is_no_record_is_passed_over(self):
        log = b'noise\n:::MLLOG {"key": "a", "time_ms": 1}\n:::MLLOG {damaged\nx :::MLLOG {"key": "b", "time_ms": 2}\n'
        self.assertEqual([record["key"] for record in mllog.records(log)], ["a", "b"])


class NotebookTest(unittest.TestCase):
    def test_it_draws(self):
        path = os.environ["NOTEBOOK"]
        if not path:
            self.skipTest("executed with Debian's packages alone")
        import nbclient
        import nbformat

        # Debian's kernel is the system's Python.
        os.environ["PYTHONPATH"] = str(pathlib.Path(assay.__file__).parent.parent)
        notebook = nbformat.read(path, as_version=4)
        nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
        images = [out for cell in notebook.cells for out in cell.get("outputs", []) if "image/png" in out.get("data", {})]
        self.assertEqual(len(images), 2)


if __name__ == "__main__":
    print("grpcio", grpc.__version__, "pandas", pandas.__version__)
    unittest.main()
