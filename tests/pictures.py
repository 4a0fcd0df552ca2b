"""Draws the pictures of the user interface and of a page in docs/images: `python tests/pictures.py`.

It takes the home of the demo as its argument (`make demo` makes dagster_home), and a Chromium.
"""

import os
import sys
import time
from pathlib import Path

from support import homes
from support.browser import HEIGHT, WIDTH, Pages, resize, ui_pages
from support.paths import ROOT

from disclosure_pipeline.demo.run import LEAKY

PICTURES: dict[str, tuple[str, list[str], int]] = {
    "lineage": ("/locations/location.py/asset-groups/survey", ["ground_truth", "candidates"], 480),
    "failing_check": (
        "/assets/survey/identity_risk?view=checks&checkDetail=found_repU",
        ["Latest execution", "exceeded"],
        HEIGHT,
    ),
    "candidates": ("/assets/survey/candidates", ["records and dates"], HEIGHT),
}
"""Name -> the page, words that it shows once it is whole, and its height in pixels."""

PAGE = Path("demo", "store", "survey", "candidates", LEAKY, "dossier.html")
"""The page of the refused candidate, in the demo's home."""

# Dagster greets whoever comes for the first time, over the page.
_CLOSE_GREETING = "[...document.querySelectorAll('button')].find((b) => b.textContent === 'Skip')?.click()"


def draw(pages: Pages, name: str) -> None:
    """Write one picture."""
    path, words, height = PICTURES[name]
    resize(pages.tab, WIDTH, height)
    pages.open(path, words)
    time.sleep(3)  # what moves comes to rest
    pages.tab.evaluate(_CLOSE_GREETING)
    time.sleep(1)
    pages.open(path, words)
    time.sleep(3)
    pages.tab.screenshot(path=ROOT / "docs" / "images" / f"{name}.png")


def main() -> None:
    """Draw all of them."""
    with homes.copied(Path(sys.argv[1])) as home:
        keys = home / "demo" / "keys"
        os.environ["DISCLOSURE_PIPELINE_SIGNING_KEY"] = str(keys / "signing-key.pem")
        os.environ["DISCLOSURE_PIPELINE_SALT"] = str(keys / "salt")
        with ui_pages(home) as pages:
            for name in PICTURES:
                draw(pages, name)
            resize(pages.tab, 1200, 900)
            pages.tab.goto((home / PAGE).as_uri())
            pages.tab.screenshot(path=ROOT / "docs" / "images" / "dossier.png")


if __name__ == "__main__":
    main()
