"""A headless browser that can reach nobody, and Dagster's web server, whose pages it shows."""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.paths import ROOT
from support.processes import PATIENCE, running_program, wait_until
from support.services import chromium, free_port

if TYPE_CHECKING:
    from playwright.sync_api import Page


# The names in charts that their edge cuts, or that are written over another name.
NAMES_CUT = """
[...document.querySelectorAll('svg')].flatMap(chart => {
  const room = chart.getBoundingClientRect();
  const names = [...chart.querySelectorAll('text')].filter(name => name.textContent.trim());
  const places = names.map(name => name.getBoundingClientRect());
  const cut = names.filter((_, i) => places[i].left < room.left || places[i].right > room.right);
  const over = names.filter((_, i) => places.some((place, j) => i < j && place.left < places[i].right
    && places[i].left < place.right && place.top < places[i].bottom && places[i].top < place.bottom));
  return [...cut, ...over].map(name => name.textContent);
})
"""


@dataclass
class Visit:
    """Record the addresses that a page requests, its own included, and its console messages."""

    requests: list[str] = field(default_factory=list)
    console: list[str] = field(default_factory=list)


def visit(tab: Page, address: str) -> Visit:
    done = Visit()
    listeners: dict[Any, Callable[[Any], None]] = {
        "request": lambda request: done.requests.append(request.url),
        "console": lambda message: done.console.append(message.text),
        "pageerror": lambda error: done.console.append(str(error)),
    }
    for event, listener in listeners.items():
        tab.on(event, listener)
    tab.goto(address, wait_until="networkidle")
    for event, listener in listeners.items():
        tab.remove_listener(event, listener)
    return done


def show(tab: Page, address: str) -> None:
    """Open a page that nothing changes, unless it is open already."""
    if tab.url != address:
        tab.goto(address)


def resize(tab: Page, width: int, height: int) -> None:
    tab.set_viewport_size({"width": width, "height": height})


@contextmanager
def browser_tab(reachable: str | None = None) -> Iterator[Page]:
    """Start a browser that reaches one host at most, with one tab."""
    from playwright.sync_api import sync_playwright

    rules = "MAP * ~NOTFOUND" + ("" if reachable is None else f", EXCLUDE {reachable}")
    with sync_playwright() as playwright:
        program = playwright.chromium.launch(
            executable_path=chromium(), args=[f"--host-resolver-rules={rules}"]
        )
        tab = program.new_page()
        tab.set_default_timeout(1000 * PATIENCE)
        yield tab
        program.close()


_SMALL_GATE = "from support.homes import code_location\n\ndefs = code_location()\n"
DEMO_GATE = "from disclosure_pipeline.definitions import defs as load\n\ndefs = load()\n"


@dataclass(frozen=True)
class Server:
    port: int

    def post(self, path: str, body: Mapping[str, Any]) -> int:
        return self._send(path, body)[0]

    def ask(self, query: str, **variables: Any) -> Any:
        content = json.loads(self._send("/graphql", {"query": query, "variables": variables})[1])
        assert "errors" not in content, content["errors"]
        return content["data"]

    def _send(self, path: str, body: Mapping[str, Any]) -> tuple[int, bytes]:
        address, kind = f"http://127.0.0.1:{self.port}{path}", {"Content-Type": "application/json"}
        request = urllib.request.Request(address, json.dumps(body).encode(), kind)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return int(answer.status), answer.read()
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.read()

    def answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/server_info", timeout=10):
                return True
        except OSError:
            return False


@contextmanager
def web_server(home: Path, definitions: str = _SMALL_GATE) -> Iterator[Server]:
    location = home / "location.py"
    location.write_text(definitions)
    port = free_port()
    folders = [str(ROOT), str(ROOT / "tests")]
    command = [
        *(sys.executable, "-m", "dagster_webserver", "-h", "127.0.0.1", "-p", str(port)),
        *("-f", str(location), "-d", str(home), "--code-server-log-level", "warning"),
    ]
    environment = os.environ | {"DAGSTER_HOME": str(home), "PYTHONPATH": os.pathsep.join(folders)}
    with running_program(command, env=environment, limit=4 * PATIENCE) as process:
        server = Server(port)
        wait_until(server.answers, "Dagster's web server did not come up", process)
        yield server


WIDTH, HEIGHT = 1440, 900

_RUNS = "{ runsOrError { ... on Runs { results { runId tags { key value } } } } }"
_CHECKS = """query ($path: [String!]!) { assetNodeOrError(assetKey: {path: $path}) { ... on AssetNode {
  assetChecksOrError { ... on AssetChecks { checks { name description } } } } } }"""


@dataclass(frozen=True)
class Pages:
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
        return self._find(_FIND_CUT, list(names))

    def find_too_long(self, shown: str, names: Sequence[str]) -> list[str]:
        """Which names would be cut where the name `shown` stands now, the widths of some in pixels."""
        return self._find(_FIND_TOO_LONG, shown, list(names))

    def find_lines(self, text: str) -> int:
        """Count the lines that the first element with this text takes."""
        return int(self.tab.evaluate(_COUNT_LINES % json.dumps(text)))

    def find_outside(self, texts: Sequence[str]) -> list[str]:
        """Which texts end outside of what can be seen of the elements around them."""
        return self._find(_FIND_OUTSIDE, list(texts))

    def _find(self, script: str, *given: str | list[str]) -> list[str]:
        return list(map(str, self.tab.evaluate(script % tuple(map(json.dumps, given)))))

    def runs(self) -> dict[str, tuple[str, dict[str, str]]]:
        runs = self.server.ask(_RUNS)["runsOrError"]["results"]
        tagged = [(run["runId"], {tag["key"]: tag["value"] for tag in run["tags"]}) for run in runs]
        return {tags["dagster/partition"]: (run, tags) for run, tags in tagged if "dagster/partition" in tags}

    def checks(self, asset: str) -> dict[str, str]:
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


_COUNT_LINES = """(() => {
  const leaf = [...document.querySelectorAll('body *')].find(
    element => !element.childElementCount && element.textContent.trim() === %s);
  const range = document.createRange();
  range.selectNodeContents(leaf);
  return new Set([...range.getClientRects()].map(line => Math.round(line.top))).size;
})()"""

_FIND_OUTSIDE = """(() => %s.filter(text => {
  const leaves = [...document.querySelectorAll('body *')].filter(
    element => !element.childElementCount && element.textContent.trim() === text);
  return !leaves.length || leaves.some(leaf => {
    const right = leaf.getBoundingClientRect().right;
    for (let around = leaf.parentElement; around; around = around.parentElement)
      if (getComputedStyle(around).overflowX !== 'visible'
          && right > around.getBoundingClientRect().right + 1) return true;
    return right > window.innerWidth;
  });
}))()"""


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
    with web_server(home, DEMO_GATE) as server, browser_tab("127.0.0.1") as tab:
        resize(tab, WIDTH, HEIGHT)
        yield Pages(server, tab)
