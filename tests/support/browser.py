"""A headless browser that can reach nobody: what pages show, ask for and say."""

from __future__ import annotations

import base64
import json
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.processes import PATIENCE, running_program
from support.services import chromium

if TYPE_CHECKING:
    from websockets.sync.client import ClientConnection

# Seconds without an event after which a page is taken to be done.
_QUIET = 0.3

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
    """What a page did while it was open: addresses asked for beside its own, and messages of its console."""

    requests: list[str] = field(default_factory=list)
    console: list[str] = field(default_factory=list)


@dataclass
class Browser:
    """One tab of a browser."""

    connection: ClientConnection
    visit: Visit = field(default_factory=Visit)
    _sent: int = 0
    _loaded: bool = False
    _address: str = ""

    def open(self, address: str) -> Visit:
        """Open a page and wait until it has loaded and is quiet."""
        self.visit, self._loaded, self._address = Visit(), False, address
        self.command("Page.navigate", url=address)
        limit = time.monotonic() + PATIENCE
        while not self._loaded and time.monotonic() < limit:
            self._receive(1)
        assert self._loaded, f"{address} did not load"
        while self._receive(_QUIET) is not None and time.monotonic() < limit:
            pass
        return self.visit

    def show(self, address: str) -> None:
        """Open a page that nothing changes, unless it is open already."""
        if address != self._address:
            self.open(address)

    def evaluate(self, expression: str) -> Any:
        """The value of an expression of JavaScript in the page; of a promise what it comes to."""
        answer = self.command(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def resize(self, width: int, height: int, scale: float = 1) -> None:
        """Make the window so many pixels large, each of `scale` pixels of a picture."""
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=False,
        )

    def picture(self, path: Path) -> None:
        """Write what the window shows as PNG."""
        answer = self.command("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(answer["data"]))

    def command(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The answer to a command of the DevTools protocol."""
        self._sent += 1
        number = self._sent
        self.connection.send(json.dumps({"id": number, "method": method, "params": parameters}))
        limit = time.monotonic() + PATIENCE
        while time.monotonic() < limit:
            message = self._receive(1)
            if message is not None and message.get("id") == number:
                assert "error" not in message, message
                return dict(message["result"])
        raise AssertionError(f"The browser did not answer {method}")

    def _receive(self, seconds: float) -> dict[str, Any] | None:
        try:
            message: dict[str, Any] = json.loads(self.connection.recv(timeout=seconds))
        except TimeoutError:
            return None
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, event: str, parameters: dict[str, Any]) -> None:
        if event == "Page.loadEventFired":
            self._loaded = True
        elif event == "Network.requestWillBeSent":
            self.visit.requests.append(parameters["request"]["url"])
        elif event == "Runtime.consoleAPICalled":
            self.visit.console.append(json.dumps(parameters["args"]))
        elif event == "Runtime.exceptionThrown":
            self.visit.console.append(json.dumps(parameters["exceptionDetails"]))
        elif event == "Log.entryAdded":
            self.visit.console.append(parameters["entry"]["text"])


@contextmanager
def browser(folder: Path, reachable: str | None = None) -> Iterator[Browser]:
    """A tab of a browser whose profile lies in `folder`; it reaches one host at most."""
    with browser_tabs(folder, 1, reachable) as [tab]:
        yield tab


@contextmanager
def browser_tabs(folder: Path, number: int, reachable: str | None = None) -> Iterator[list[Browser]]:
    """So many tabs of one such browser, each for a thread of its own."""
    from websockets.sync.client import connect

    rules = "MAP * ~NOTFOUND" + ("" if reachable is None else f", EXCLUDE {reachable}")
    command: list[str | Path] = [
        *(chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
        *("--disable-background-networking", "--disable-component-update", "--hide-scrollbars"),
        *("--disable-background-timer-throttling", "--disable-renderer-backgrounding"),
        *(f"--host-resolver-rules={rules}", f"--user-data-dir={folder / 'profile'}"),
        *("--remote-debugging-port=0", "--remote-allow-origins=*", "about:blank"),
    ]
    with running_program(command) as process:
        port = _port(folder / "profile" / "DevToolsActivePort")
        pages = [_first_page(port), *(_new_page(port) for _ in range(number - 1))]
        with ExitStack() as stack:
            tabs = [
                Browser(stack.enter_context(connect(page, max_size=None, compression=None))) for page in pages
            ]
            for tab, domain in product(tabs, ("Page", "Network", "Runtime", "Log")):
                tab.command(f"{domain}.enable")
            for tab in tabs:  # all behave as the one that is in front
                tab.command("Emulation.setFocusEmulationEnabled", enabled=True)
            yield tabs
        process.terminate()


def _port(file: Path) -> int:
    limit = time.monotonic() + PATIENCE
    while time.monotonic() < limit:
        if file.is_file() and (lines := file.read_text().split()):
            return int(lines[0])
        time.sleep(0.05)
    raise AssertionError("The browser did not start")


def _first_page(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=PATIENCE) as answer:
        targets = json.load(answer)
    return next(str(target["webSocketDebuggerUrl"]) for target in targets if target["type"] == "page")


def _new_page(port: int) -> str:
    request = urllib.request.Request(f"http://127.0.0.1:{port}/json/new?about:blank", method="PUT")
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return str(json.load(answer)["webSocketDebuggerUrl"])
