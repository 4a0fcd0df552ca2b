"""A headless browser that can reach nobody: what pages show, ask for and say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from support.processes import PATIENCE
from support.services import chromium

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
    """What a page did while it was open: addresses asked for, its own too, and messages of its console."""

    requests: list[str] = field(default_factory=list)
    console: list[str] = field(default_factory=list)


def visit(tab: Page, address: str) -> Visit:
    """Open a page and wait until it has loaded and asks for nothing any more."""
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
