"""Take the pictures of the survey pages.

A made-up town answers; Chromium (Playwright with Debian's browser) photographs every page on a
phone and on a desktop.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from deniable.service.document import SurveyDocument, read_document
from deniable.service.store import SurveyStore

HERE = Path(__file__).parent
FOLDER = HERE / "survey_pages"
SIZES = {"phone": (390, 844), "desktop": (1200, 800)}
PEOPLE = 3_000
KEY = "pictures"
TOWN = {
    "format": "deniable survey", "version": 1, "name": "town-health", "wave": 1,
    "population": "town/adult", "limit": None, "languages": ["en", "de"],
    "admission": "blind tokens",
    "title": {"en": "Health in our town", "de": "Gesundheit in unserer Stadt"},
    "consent": {
        "en": "Taking part is voluntary. Only randomised answers are kept, without names or times.",
        "de": "Die Teilnahme ist freiwillig. Nur zufällig veränderte Antworten werden aufbewahrt.",
    },
    "questions": [
        {"id": "drugs", "kind": "yes/no", "epsilon": "ln 3",
         "text": {"en": "Did you take illegal drugs in the last year?",
                  "de": "Haben Sie im letzten Jahr illegale Drogen genommen?"}},
        {"id": "drink", "kind": "choice", "epsilon": 1.5,
         "text": {"en": "How often do you drink alcohol?", "de": "Wie oft trinken Sie Alkohol?"},
         "options": [{"en": "never", "de": "nie"}, {"en": "at weekends", "de": "am Wochenende"},
                     {"en": "every day", "de": "jeden Tag"}]},
        {"id": "hours", "kind": "number", "epsilon": 1, "low": 0, "high": 12,
         "text": {"en": "How many hours do you sleep?",
                  "de": "Wie viele Stunden schlafen Sie?"}},
    ],
}  # fmt: skip


def main() -> None:
    """Serve the town, fill it, and photograph it."""
    FOLDER.mkdir(exist_ok=True)
    document = read_document(json.dumps(TOWN))
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "town.db"
        codes = fill(document, place)
        file = Path(folder) / "town.json"
        file.write_text(document.text)
        with serving(file, place) as base, sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
            )
            for size in SIZES:
                page = opened(browser, size)
                respondent(page, f"{base}/s/{document.id}", codes.pop(), size)
                operator(page, base, document.id, size)
                page.context.close()
            close(document, place)
            for size in SIZES:
                page = opened(browser, size)
                page.goto(f"{base}/s/{document.id}?lang=en")
                page.wait_for_selector("#closed")
                take(page, "closed", size)
                page.context.close()
            browser.close()


def opened(browser: Browser, size: str) -> Page:
    """An empty page of this size."""
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height}, reduced_motion="reduce"
    )
    return context.new_page()


def close(document: SurveyDocument, place: Path) -> None:
    """The end of the survey."""
    store = SurveyStore(place, keys=place.with_suffix(".keys"))
    store.close_survey(document)
    store.close()


def fill(document: SurveyDocument, place: Path) -> list[str]:
    """Made-up people, of whom a fifth takes drugs; those who do drink more."""
    store = SurveyStore(place, keys=place.with_suffix(".keys"))
    store.add(document)
    sheets = []
    for person in range(PEOPLE):
        drugs = int(person % 5 == 0)
        truth = (drugs, 2 if drugs else person % 2, 6 + person % 3)
        pairs = zip(document.items, truth, strict=True)
        sheets.append(tuple(int(item.protocol.randomize([answer])[0]) for item, answer in pairs))
    store.enter(document, "made up", sheets)
    codes = store.invite(document, ["first", "second"])
    store.close()
    return codes


@contextmanager
def serving(document: Path, place: Path) -> Iterator[str]:
    """The server, until the pictures are taken."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = "import sys; from deniable.cli.app import app; app(sys.argv[1:])"
    command = ["survey", "serve", str(document), "--store", str(place), "--port", str(port)]
    environment = {**os.environ, "DENIABLE_OPERATOR_KEY": KEY}
    process = subprocess.Popen(  # noqa: S603  (this very interpreter)
        [sys.executable, "-c", code, *command], env=environment, stdout=subprocess.DEVNULL
    )
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def respondent(page: Page, url: str, code: str, size: str) -> None:
    """From the invitation to the receipt, and the sheet for paper."""
    page.goto(f"{url}?lang=en#{code}")
    page.wait_for_selector("#agree")
    take(page, "consent", size)
    page.click("#agree")
    page.check("#option-0")
    take(page, "question", size)
    page.click("#throw")
    take(page, "coins", size)
    page.click("#next")
    page.check("#option-1")
    page.click("#throw")
    take(page, "wheel", size)
    page.click("#next")
    page.fill("#number", "7")
    take(page, "number", size)
    page.click("#throw")
    page.click("#next")
    take(page, "review", size)
    page.click("#send")
    page.wait_for_selector("#done")
    page.click("#check summary")
    page.locator("#hash", has_text="token key").wait_for()
    take(page, "thanks", size)
    page.goto(f"{url}/paper?lang=en")
    take(page, "paper", size)
    page.goto(f"{url}?lang=de&preview")
    page.wait_for_selector("#agree")
    take(page, "preview", size)


def operator(page: Page, base: str, survey: str, size: str) -> None:
    """Every page behind the key."""
    page.goto(f"{base}/operator/enter/{KEY}")
    take(page, "surveys", size)
    page.goto(f"{base}/operator/plan?people=2000")
    take(page, "planner", size)
    page.goto(f"{base}/operator/design")
    page.fill("[name=text-1]", "Have you ever taken something from a shop without paying?")
    page.click("button[value=check]")
    take(page, "designer", size)
    page.goto(f"{base}/operator/{survey}")
    take(page, "estimates", size)
    page.fill("[name=people]", f"a reader on a {size}")
    page.click("button:has-text('Invite')")
    take(page, "invitations", size)
    page.goto(f"{base}/operator/{survey}/crosstab?first=drugs&second=drink")
    take(page, "crosstab", size)
    page.goto(f"{base}/operator/{survey}/paper")
    take(page, "paper_entry", size)


def take(page: Page, name: str, size: str) -> None:
    """One picture of the whole page, in few colours: text stays sharp and files small."""
    file = FOLDER / f"{name}_{size}.png"
    page.screenshot(path=file, full_page=True)
    with Image.open(file) as picture:
        picture.convert("RGB").quantize(48, dither=Image.Dither.NONE).save(file, optimize=True)


if __name__ == "__main__":
    main()
