"""What the official compliance checker says of many logs, asked in one process.

    python3 official_verdicts.py LOGS > VERDICTS

LOGS holds one record after the other: a line "RULESET LENGTH" and LENGTH bytes of log. VERDICTS gets
one JSON object per record: verdict, the classes of error (named as in the oracle data's README), the
keys warned about, and the verdict with warnings as errors. Only the reading of rule files and the
compiling of their expressions are cached; everything else is the package's own code.
"""

import builtins
import functools
import json
import logging
import os
import re
import sys
import tempfile

from mlperf_logging.compliance_checker import mlp_compliance

MISSING = re.compile(r"Required (?:EXACTLY_ONE|AT_LEAST_ONE) occurrence of '(.*)' but found 0$", re.S)
DIFFERENT = re.compile(r"Required EXACTLY_ONE occurrence of '.*' but found \d+ with different", re.S)
ALTERNATIVES = re.compile(r"Required AT_LEAST_ONE occurrence of ('.*')$")
NO_LINE = re.compile(r"Failed checks for (\S+) : ")
CONFIG = re.compile(r"Could not find config file: .*?/hpc_\d+\.\d+\.\d+/(.*)", re.S)
KEYED = {"CHECK for ": "check_failed", "Failed executing CHECK": "check_error",
         "Failed executing code": "exec_error"}


def cache_rules():
    """Reading rules anew for every log would take most of the time."""
    load, cached = mlp_compliance.yaml.load, {}

    def load_once(stream, Loader):
        text = stream.read()
        if text not in cached:
            cached[text] = load(text, Loader=Loader)
        return cached[text]

    mlp_compliance.yaml.load = load_once
    compiled = functools.lru_cache(None)(lambda source, mode: compile(source, "<rule>", mode))
    mlp_compliance.eval = lambda source, *scopes: builtins.eval(compiled(source, "eval"), *scopes)
    mlp_compliance.exec = lambda source, *scopes: builtins.exec(compiled(source, "exec"), *scopes)


def keyed_class(key, message):
    if MISSING.match(message):
        return f"missing:{key}"
    if DIFFERENT.match(message):
        return f"exactly_one_many_different:{key}"
    for start, name in KEYED.items():
        if message.startswith(start):
            return f"{name}:{key}"
    return f"unknown:{message}"


def unkeyed_class(message):
    if message.startswith("Log lines had parsing errors"):
        return "parse_errors"
    if message.startswith("No log lines detected"):
        return "no_log_lines"
    if match := NO_LINE.match(message):
        return f"no_line_passes:{match[1]}"
    if match := CONFIG.match(message):
        return f"config_missing:{match[1]}"
    if match := ALTERNATIVES.match(message):
        names = sorted(name.strip("'") for name in match[1].split(" or "))
        return "missing_alternative:" + "|".join(names)
    return f"unknown:{message}"


def ask(path, ruleset, werror):
    mlp_compliance.enqueued_configs.clear()
    checker = mlp_compliance.make_checker("hpc", ruleset, quiet=False, werror=werror)
    errors = set()
    try:
        passed = checker.check_file(path, f"hpc_{ruleset}/common.yaml")
    except BaseException as error:  # whatever ends the tool is a failure of the log
        passed = False
        errors.add(f"crash:{type(error).__name__}")
    errors.update(keyed_class(k, m) for k, m in checker.overwritable.items())
    errors.update(unkeyed_class(m) for m in checker.not_overwritable)
    warnings = [] if any(e.startswith("crash:") for e in errors) else sorted(checker.warnings)
    return passed, sorted(errors), warnings


def main():
    logging.disable(logging.CRITICAL)
    cache_rules()
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "result_0.txt")
    with open(sys.argv[1], "rb") as logs:
        while header := logs.readline():
            ruleset, length = header.decode().split()
            with open(path, "wb") as log:
                log.write(logs.read(int(length)))
            passed, errors, warnings = ask(path, ruleset, werror=False)
            strict = passed and not warnings and ask(path, ruleset, werror=True)[0]
            print(json.dumps({"verdict": "pass" if passed else "fail", "errors": errors,
                              "warnings": warnings, "strict": "pass" if strict else "fail"}))
    os.unlink(path)
    os.rmdir(folder)


if __name__ == "__main__":
    main()
