"""Makes a tree of published results whose names and log lines attack whoever shows them.

  hostile_tree.py SOURCE TARGET

SOURCE is an entry's folder with result_*.txt; TARGET becomes a repository ORG/results/SYSTEM/BENCHMARK.
"""
import pathlib
import sys

# Markup, script addresses, quotation marks, direction marks, control bytes, what is no UTF-8, and
# words without a place to break. Names of folders hold neither "/" nor a zero byte.
NAME = "<img src=x onerror=alert(1)>\"'&\u202egpj.\u2066"
SYSTEM = "sys_<script>alert(2)<\u2044script>_\u2069" + "w" * 60
LINES = [
    b"<script>document.title='owned'</script>",
    b"</td></tr></table><h1>owned</h1>",
    b"\"><svg onload=alert(3)>",
    b"javascript:alert(4)",
    "\u202ereversed\u2066 \u200fmarks\u2069".encode(),
    b"bell \x07 escape \x1b[2J null \x00 delete \x7f c1 \xc2\x9b31m",
    b"not utf-8 \xff\xfe\xc0\xbc \xed\xa0\x80",
    b"w" * 5000,
    b"&lt;b&gt; &amp; &#60;i&#62;",
    b":::MLLOG {\"key\": \"eval_error\", \"value\": \"<b>x</b>\", \"time_ms\": 1, \"metadata\": {}}",
]


def main():
    source, target = map(pathlib.Path, sys.argv[1:])
    folder = target / NAME / "results" / SYSTEM / source.name
    folder.mkdir(parents=True)
    for log in sorted(source.glob("result_*.txt")):
        (folder / log.name).write_bytes(log.read_bytes() + b"\n".join(LINES) + b"\n")


if __name__ == "__main__":
    main()
