"""How much faster `assay rules check` is than the official Python checker, on the same logs.

    python3 tests/bench/rules_official_bench.py LOGS [--ruleset 1.0.0] [--count 40]
        [--assay build/release/bin/assay] [--official build/dev/official_checker/bin/python3]

LOGS is a folder with result_*.txt at any depth. The official checker gets COUNT of them, spread over
the folder, because all would take minutes; ours gets the same, and then all. Processor seconds are
compared, which neighbours disturb less than the clock; both run on one core. The environment of the
official checker is made by tests/rules/mutation_test.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time

OFFICIAL = """
import logging, sys, time
logging.disable(logging.CRITICAL)
from mlperf_logging.compliance_checker import mlp_compliance
begin = time.process_time()
for path in sys.argv[2:]:
    mlp_compliance.enqueued_configs.clear()
    checker = mlp_compliance.make_checker("hpc", sys.argv[1], quiet=False, werror=False)
    try:
        checker.check_file(path, f"hpc_{sys.argv[1]}/common.yaml")
    except Exception:
        pass
print(time.process_time() - begin)
"""


def find_logs(folder):
    return sorted(os.path.join(root, name) for root, _, names in os.walk(folder) for name in names
                  if name.startswith("result_") and name.endswith(".txt"))


def run(argv):
    """Standard output, processor seconds and wall seconds of a program on one core."""
    def pin():
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=pin)
    wall, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.stdout, cpu, wall


def best(argv, repeats=5):
    return min((run(argv) for _ in range(repeats)), key=lambda result: result[1])


def linked(logs, copies, folder):
    """A folder with COPIES links to each log: the same bytes again, without reading the disk."""
    for copy in range(copies):
        for number, log in enumerate(logs):
            target = os.path.join(folder, str(copy), f"{number:04}")
            os.makedirs(target)
            os.symlink(os.path.abspath(log), os.path.join(target, "result_0.txt"))
    return folder


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("logs")
    parser.add_argument("--ruleset", default="1.0.0")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--assay", default="build/release/bin/assay")
    parser.add_argument("--official", default="build/dev/official_checker/bin/python3")
    args = parser.parse_args()
    everything = find_logs(args.logs)
    logs = everything[::max(1, len(everything) // args.count)][:args.count]
    size = sum(os.path.getsize(log) for log in logs)
    records = sum(open(log, "rb").read().count(b":::MLLOG ") for log in logs)
    check = [args.assay, "rules", "check", "--json=verdict", "--ruleset", args.ruleset]

    official = float(run([args.official, "-c", OFFICIAL, args.ruleset, *logs])[0])
    official_one = best([args.official, "-m", "mlperf_logging.compliance_checker", "--usage", "hpc",
                         "--ruleset", args.ruleset, "--log_output", os.devnull, logs[0]], 3)[1]
    one = best([*check, logs[0]])[1]
    copies = 20
    with tempfile.TemporaryDirectory() as folder:
        many = best([*check, linked(logs, copies, folder)], 3)[1]
    ours = (many - one) / copies
    whole = best([*check, args.logs], 3)
    # Also on every core that there is.
    begin = time.monotonic()
    subprocess.run([*check, args.logs], stdout=subprocess.DEVNULL)
    parallel = time.monotonic() - begin

    print(f"{len(logs)} logs, {records} records, {size / 1e6:.1f} MB, ruleset {args.ruleset}")
    print("| | official | assay | ratio |\n|---|---|---|---|")
    print(f"| in one process, {len(logs)} logs | {official:.2f} s | {ours * 1e3:.1f} ms | "
          f"{official / ours:.0f} |")
    print(f"| records per second | {records / official:.0f} | {records / ours:.0f} | |")
    print(f"| a process for one log | {official_one:.2f} s | {one * 1e3:.0f} ms | "
          f"{official_one / one:.0f} |")
    print(f"\nThe whole folder, {len(everything)} logs, process start included: {whole[1]:.2f} s of one "
          f"core, {whole[2]:.2f} s by the clock; {parallel:.2f} s with all cores.")


if __name__ == "__main__":
    sys.exit(main())
