"""Follows a run in many tabs of one browser, as WB-7 of the site wants it: at most three of them hold
a stream, the others ask again and again, and all see what comes.

  live_test.py https://localhost:8443 --run r-7 --end COMMAND...

The run goes on until COMMAND ends it.
"""
import argparse
import os
import re
import subprocess
import sys

from playwright.sync_api import sync_playwright

TABS = 8
STREAMS = 3
PATIENCE_MS = 120_000
NUMBERS = "() => [...document.querySelectorAll('ol[data-live] li[data-seq]')].map(i => +i.dataset.seq)"
# How many tabs of the browser have a stream.
STREAMING = """(await navigator.locks.query()).held
    .filter(lock => lock.name.startsWith('assay-live-')).length"""


class Failure(Exception):
    pass


def expect(is_so, what):
    if not is_so:
        raise Failure(what)


def await_more(tab, after):
    """Until the tab shows an event after that number; its numbers."""
    tab.wait_for_function(
        "after => [...document.querySelectorAll('ol[data-live] li[data-seq]')]"
        ".some(i => +i.dataset.seq > after)", arg=after, timeout=PATIENCE_MS)
    numbers = tab.evaluate(NUMBERS)
    expect(all(a < b for a, b in zip(numbers, numbers[1:])),
           f"events out of order, or twice: {numbers}")
    return numbers


def open_tab(context, address):
    tab = context.new_page()
    tab.goto(address, wait_until="load", timeout=PATIENCE_MS)
    return tab


def await_streams(tab, count):
    tab.wait_for_function(f"async count => {STREAMING} === count", arg=count, timeout=PATIENCE_MS)


def check(context, base, run, end):
    address = f"{base}/runs/{run}/live"
    tabs = [open_tab(context, address) for _ in range(TABS)]
    seen = [await_more(tab, 0)[-1] for tab in tabs]
    expect(tabs[0].evaluate(f"async () => {STREAMING}") == STREAMS, "not three tabs have a stream")
    for tab, last in zip(tabs, seen):
        await_more(tab, last)
    # Whoever reloads goes on: the page has what was, the stream what comes.
    page = tabs[0].reload(wait_until="load", timeout=PATIENCE_MS).text()
    after = int(re.search(r'data-after="(\d+)"', page).group(1))
    numbers = await_more(tabs[0], after)
    expect(numbers == list(range(after + 1, after + 1 + len(numbers))),
           f"after event {after} come {numbers} when the page is loaded again")
    # A tab that goes leaves its stream to the next.
    tabs.pop(1).close()
    late = open_tab(context, address)
    await_streams(late, STREAMS)
    tabs.append(late)
    open_tab(context, base + "/").close()
    subprocess.run(end, check=True, stdout=subprocess.DEVNULL)
    for tab in tabs:
        tab.wait_for_function(
            "() => document.querySelector('ol[data-live]').dataset.state === 'ended'",
            timeout=PATIENCE_MS)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("base")
    parser.add_argument("--run", required=True)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    parser.add_argument("--end", nargs=argparse.REMAINDER, required=True)
    arguments = parser.parse_args()
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=arguments.chromium, args=options)
        context = browser.new_context(ignore_https_errors=True)
        try:
            check(context, arguments.base, arguments.run, arguments.end)
        except Failure as failure:
            print(failure)
            return 1
        finally:
            browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
