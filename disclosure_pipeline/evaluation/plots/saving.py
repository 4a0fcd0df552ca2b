"""`save_plot()`: a picture as a file that needs nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.evaluation.plots.conversion import save

if TYPE_CHECKING:
    import altair as alt

FORMATS = ("png", "svg", "html")

# A menu of the page could send the picture's data to an editor on another host.
_MENU = {"actions": {"export": True, "source": False, "compiled": False, "editor": False}}


def save_plot(chart: alt.TopLevelMixin, path: str | Path) -> None:
    """Write a picture as PNG, SVG or HTML, by the ending of `path`; what is there is replaced.

    The HTML holds the scripts that it needs: it works without a network, and asks no other host.

    Raises:
        InputError: The path ends in something else.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import pandas as pd
        >>> import disclosure_pipeline as dp
        >>> patients = pd.DataFrame({"age": [30, 30, 40, 50], "illness": ["flu", "cold", "flu", "cold"]})
        >>> result = dp.disclosure(patients, patients, ["age"], "illness")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     dp.save_plot(result.plot(), Path(folder) / "disclosure.svg")
        ...     (Path(folder) / "disclosure.svg").read_text()[:4]
        '<svg'
    """
    path = Path(path)
    ending = path.suffix.lower().removeprefix(".")
    if ending not in FORMATS:
        raise InputError(
            f"The plot's file must end in .png, .svg or .html, not {path.suffix or 'nothing'!r}."
        )
    options: dict[str, Any] = {"format": ending}
    if ending == "html":
        options |= {"inline": True, "embed_options": _MENU}
    elif ending == "png":
        options |= {"scale_factor": 2}
    save(chart, path, options)
