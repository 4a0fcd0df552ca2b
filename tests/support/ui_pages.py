"""Pages of Dagster's user interface in a browser, over the home of the demo."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from support.browser import browser_tab, resize, show
from support.processes import PATIENCE
from support.web_server import DEMO_GATE, Server, web_server

if TYPE_CHECKING:
    from playwright.sync_api import Page

WIDTH, HEIGHT = 1440, 900

_RUNS = "{ runsOrError { ... on Runs { results { runId tags { key value } } } } }"
_CHECKS = """query ($path: [String!]!) { assetNodeOrError(assetKey: {path: $path}) { ... on AssetNode {
  assetChecksOrError { ... on AssetChecks { checks { name description } } } } } }"""


@dataclass(frozen=True)
class Pages:
    """A browser before the user interface of a home."""

    server: Server
    tab: Page

    def open(self, path: str, words: Sequence[str]) -> str:
        """Open a page and wait until it shows all of these words and nothing moves; all that it shows."""
        self.tab.goto(self._address(path))
        return self._wait_for(path, words)

    def show(self, path: str, words: Sequence[str]) -> str:
        """The same of a page that no test changed, which is not loaded again where it is open."""
        show(self.tab, self._address(path))
        return self._wait_for(path, words)

    def _address(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server.port}{path}"

    def _wait_for(self, path: str, words: Sequence[str]) -> str:
        limit = time.monotonic() + PATIENCE / 3
        widths = None
        while True:
            shown = str(self.tab.evaluate("document.body.innerText"))
            missing = [word for word in words if word not in shown]
            widths_before, widths = widths, self.tab.evaluate(_WIDTHS)
            if not missing and widths == widths_before:
                return shown
            assert time.monotonic() < limit, f"{path} does not show {missing}, but:\n{shown}"
            self.tab.wait_for_timeout(300)

    def find_cut_names(self, names: Sequence[str]) -> list[str]:
        """Which of these names are shown with an ellipsis, or wider than what holds them."""
        texts = self.tab.evaluate(_FIND_CUT % json.dumps(list(names)))
        return list(map(str, texts))

    def find_too_long(self, shown: str, names: Sequence[str]) -> list[str]:
        """Which names would be cut where the name `shown` stands now, the widths of some in pixels."""
        texts = self.tab.evaluate(_FIND_TOO_LONG % (json.dumps(shown), json.dumps(list(names))))
        return list(map(str, texts))

    def runs(self) -> dict[str, tuple[str, dict[str, str]]]:
        """Candidate -> id and tags of its run."""
        runs = self.server.ask(_RUNS)["runsOrError"]["results"]
        tagged = [(run["runId"], {tag["key"]: tag["value"] for tag in run["tags"]}) for run in runs]
        return {tags["dagster/partition"]: (run, tags) for run, tags in tagged if "dagster/partition" in tags}

    def checks(self, asset: str) -> dict[str, str]:
        """The checks of an asset of the demo's gate: name -> description."""
        node = self.server.ask(_CHECKS, path=["survey", asset])["assetNodeOrError"]
        return {check["name"]: check["description"] for check in node["assetChecksOrError"]["checks"]}


_WIDTHS = "[...document.querySelectorAll('body *')].map((element) => element.clientWidth).join()"

# An element is wider than it seems where its content is; an ellipsis may also be written by a program.
_FIND_CUT = """(() => {
  const names = %s, cut = new Set();
  for (const element of document.querySelectorAll('body *')) {
    if (element.childElementCount) continue;
    const text = (element.textContent || '').trim();
    for (const name of names) {
      if (text === name && element.clientWidth && element.scrollWidth > element.clientWidth) cut.add(name);
      const parts = text.split('…');
      if (parts.length === 2 && text.length > 6 && name.startsWith(parts[0]) && name.endsWith(parts[1]))
        cut.add(text);
    }
  }
  return [...cut];
})()"""


# The names stand in rows, the first of which is taken: it ends where the row does.
_FIND_TOO_LONG = """(() => {
  const shown = %s, names = %s;
  const leaf = [...document.querySelectorAll('body *')].find(
    element => !element.childElementCount && element.textContent.trim() === shown);
  let row = leaf;
  while (getComputedStyle(row).display !== 'flex') row = row.parentElement;
  const room = row.getBoundingClientRect().right - leaf.getBoundingClientRect().left;
  const style = getComputedStyle(leaf);
  const pen = document.createElement('canvas').getContext('2d');
  pen.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  return names.filter(name => pen.measureText(name).width > room)
    .map(name => `${name}: ${pen.measureText(name).width} of ${room}`);
})()"""


@contextmanager
def ui_pages(home: Path) -> Iterator[Pages]:
    """The user interface over a home of the demo, 1,440 pixels wide."""
    with web_server(home, DEMO_GATE) as server, browser_tab("127.0.0.1") as tab:
        resize(tab, WIDTH, HEIGHT)
        yield Pages(server, tab)
