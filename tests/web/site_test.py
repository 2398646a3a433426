"""Opens the pages of a running assay-web in Debian's Chromium and reports what is wrong with them.

  site_test.py https://localhost:8443 --pages PAGES.txt [--screenshots DIR]

PAGES.txt has a path on each line, and behind a tab the name of its screenshot, if it is to have one.
Every page is opened light, dark, printed and without JavaScript, 1280 and 360 pixels wide: it has to
answer 200, to leave no error on the console, to have no violation that axe-core finds, and not to be
wider than the window. A page with faults has to be reported, or nothing here is worth anything.
"""
import argparse
import os
import pathlib
import sys

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

WIDE, NARROW = 1280, 360
SHOT_BYTES = 150_000  # of a screenshot, which the documents show
# What no page may contain as markup, whatever it shows of others (tests/web/hostile_tree.py).
OWNED = """() => ({
  title: document.title.includes('owned') && !document.title.includes('<'),
  scripts: [...document.scripts].filter(s => !s.src.startsWith(location.origin + '/static/')).length,
  handlers: document.querySelectorAll('[onerror],[onload],[onclick],img,iframe,object,embed').length,
  links: [...document.links].filter(a => !a.href.startsWith(location.origin + '/')).length,
  marks: /[\\u202a-\\u202e\\u2066-\\u2069\\u200e\\u200f\\u0000-\\u0008\\u001b]/.test(document.body.innerText),
  styles: document.querySelectorAll('[style],style').length,
})"""
FAULTS = """<html><head></head><body><img src="/no-such-file"><p style="color:#ccc">pale</p><input>
<div style="width:3000px">wide</div><script>undefined_function()</script></body></html>"""
TABS = 5  # pressed to see where the focus goes


class Checker:
    def __init__(self, base, screenshots):
        self.base, self.screenshots, self.problems = base, screenshots, []

    def watch(self, page, name):
        def say(problem):
            self.problems.append(f"{name}: {problem}")

        page.on("console", lambda m: say(f"console: {m.text}") if m.type == "error" else None)
        page.on("pageerror", lambda e: say(f"script: {e}"))
        page.on("dialog", lambda d: (say(f"dialog: {d.message}"), d.dismiss()))
        return say

    def axe(self, page, say):
        for violation in Axe().run(page).response["violations"]:
            nodes = "; ".join(n["html"][:120] for n in violation["nodes"][:2])
            say(f"axe {violation['id']} ({violation['impact']}): {nodes}")

    def width(self, page, say):
        widths = page.evaluate("() => [document.documentElement.scrollWidth, window.innerWidth]")
        if widths[0] > widths[1]:
            say(f"is {widths[0]} pixels wide in a window of {widths[1]}")

    def open(self, context, path, label, do_axe=True, do_script=True):
        page = context.new_page()
        say = self.watch(page, f"{path} ({label})")
        response = page.goto(self.base + path, wait_until="load")
        if response.status != 200:
            say(f"status {response.status}")
        self.width(page, say)
        if do_script:
            for fault, count in page.evaluate(OWNED).items():
                if count:
                    say(f"holds {fault} of others: {count}")
        if do_axe:
            self.axe(page, say)
        return page, say

    def shoot(self, page, name):
        """The upper part of the page, as much of it as SHOT_BYTES hold."""
        if not name or not self.screenshots:
            return
        file = self.screenshots / f"{name}.png"
        size = page.viewport_size
        for share in (1, 0.8, 0.65, 0.5, 0.4):
            height = int(size["height"] * share)
            page.screenshot(path=str(file),
                            clip={"x": 0, "y": 0, "width": size["width"], "height": height})
            if file.stat().st_size <= SHOT_BYTES:
                return


def pages_of(path):
    for line in path.read_text().splitlines():
        if line.strip():
            page, _, name = line.partition("\t")
            yield page, name.strip()


def check_schemes(checker, browser, pages):
    for scheme, width, height in (("light", WIDE, 900), ("dark", WIDE, 900), ("light", NARROW, 740),
                                  ("dark", NARROW, 740)):
        context = browser.new_context(ignore_https_errors=True, color_scheme=scheme, bypass_csp=True,
                                      viewport={"width": width, "height": height})
        for path, name in pages:
            label = f"{scheme}, {width}"
            # The narrow dark page has the colours of the wide one and the layout of the light one.
            page, _ = checker.open(context, path, label, do_axe=not (scheme == "dark" and width == NARROW))
            suffix = ("" if scheme == "light" else "-dark") + ("" if width == WIDE else "-narrow")
            checker.shoot(page, name and name + suffix)
            page.close()
        context.close()


def check_print_and_no_script(checker, browser, pages):
    context = browser.new_context(ignore_https_errors=True, java_script_enabled=False,
                                  viewport={"width": WIDE, "height": 900})
    for path, name in pages:
        page = context.new_page()
        say = checker.watch(page, f"{path} (without script)")
        response = page.goto(checker.base + path, wait_until="load")
        if response.status != 200:
            say(f"status {response.status}")
        if page.locator("main h1").count() != 1:
            say("has not one heading")
        page.emulate_media(media="print")
        if page.locator("form:visible").count() + page.locator("header .who:visible").count():
            say("prints its forms")
        pdf = page.pdf(format="A4")
        if not pdf.startswith(b"%PDF"):
            say("can not be printed")
        checker.shoot(page, name and name + "-print")
        page.close()
    context.close()


def check_policy(checker, browser, path):
    """With the site's own policy in force: nothing of the page is refused by it."""
    context = browser.new_context(ignore_https_errors=True)
    page = context.new_page()
    say = checker.watch(page, f"{path} (policy)")
    page.goto(checker.base + path, wait_until="load")
    refused = page.evaluate("""() => { const s = document.createElement('script');
        s.textContent = 'window.owned = true'; document.body.append(s); return !window.owned; }""")
    checker.problems = [p for p in checker.problems if "(policy): console" not in p]
    if not refused:
        say("runs a script that was put into it")
    context.close()


def check_focus(checker, browser, path):
    """Whoever has no mouse sees where he is."""
    context = browser.new_context(ignore_https_errors=True, viewport={"width": WIDE, "height": 900})
    page = context.new_page()
    say = checker.watch(page, f"{path} (keyboard)")
    page.goto(checker.base + path, wait_until="load")
    for _ in range(TABS):
        page.keyboard.press("Tab")
        if page.evaluate("() => getComputedStyle(document.activeElement).outlineStyle") == "none":
            say("does not show its focus: " + page.evaluate("() => document.activeElement.outerHTML.slice(0, 100)"))
    context.close()


def check_faults(browser):
    """What a page seeded with faults is reported for."""
    checker = Checker("", None)
    context = browser.new_context(viewport={"width": NARROW, "height": 740})
    page = context.new_page()
    say = checker.watch(page, "faults")
    page.set_content(FAULTS)
    checker.axe(page, say)
    checker.width(page, say)
    context.close()
    found = "\n".join(checker.problems)
    wanted = ("image-alt", "color-contrast", "label", "html-has-lang", "pixels wide", "undefined_function")
    return [f"a page with faults is not reported for {what}" for what in wanted if what not in found]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("base")
    parser.add_argument("--pages", type=pathlib.Path, required=True)
    parser.add_argument("--screenshots", type=pathlib.Path)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    arguments = parser.parse_args()
    if arguments.screenshots:
        arguments.screenshots.mkdir(parents=True, exist_ok=True)
    pages = list(pages_of(arguments.pages))
    # The sandbox of Chromium refuses root.
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    checker = Checker(arguments.base, arguments.screenshots)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=arguments.chromium, args=options)
        checker.problems += check_faults(browser)
        check_schemes(checker, browser, pages)
        check_print_and_no_script(checker, browser, pages)
        check_policy(checker, browser, pages[0][0])
        check_focus(checker, browser, pages[0][0])
        browser.close()
    for problem in checker.problems:
        print(problem)
    print(f"{len(pages)} pages, {len(checker.problems)} problems")
    return 1 if checker.problems else 0


if __name__ == "__main__":
    sys.exit(main())
