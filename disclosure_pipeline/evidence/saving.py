"""`save()`: a result as a page, a chart as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.evaluation.plots.drawing import FORMATS, save_chart
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.evidence.page.rendering import render_result
from disclosure_pipeline.runtime.files import write_whole
from disclosure_pipeline.tables.messages import describe_argument

if TYPE_CHECKING:
    import altair as alt


def save(shown: Disclosure | alt.TopLevelMixin, path: str | Path) -> None:
    """Save a result as a page, or a chart as PNG, SVG or HTML by the suffix of `path`.

    An existing file is replaced. The page of a result is that of `disclosure-pipeline measure --format html`:
    one file without scripts, with charts and explanations, and no levels of fewer than 10 people. The HTML of
    a chart contains the scripts that it needs. Neither loads anything from elsewhere.

    Args:
        shown: What `disclosure()` returned, or what one of the `plot` methods did.
        path: The file: of a page, its name ends in .html; of a chart, in .png, .svg or .html.

    Raises:
        InputError: It is neither a result nor a chart, or the path has another suffix.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import pandas as pd
        >>> import disclosure_pipeline as dp
        >>> patients = pd.DataFrame({"age": [30, 30, 40, 50], "illness": ["flu", "cold", "flu", "cold"]})
        >>> result = dp.disclosure(patients, patients, ["age"], "illness")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     dp.save(result, Path(folder) / "report.html")
        ...     dp.save(result.plot(), Path(folder) / "disclosure.svg")
        ...     [path.read_text(encoding="utf-8")[:5] for path in sorted(Path(folder).iterdir())]
        ['<svg ', '<!DOC']
    """
    path = Path(path)
    ending, named = path.suffix.lower().removeprefix("."), repr(path.suffix or "nothing")
    if isinstance(shown, Disclosure):
        if ending != "html":
            raise InputError(f"The page's file must end in .html, not {named}.")
        write_whole(path, render_result(shown).encode())
        return
    import altair as alt  # only a chart needs it

    if not isinstance(shown, alt.TopLevelMixin):
        raise InputError(
            f"Expected a result of disclosure(), or a chart of a plot method, not {describe_argument(shown)}."
        )
    if ending not in FORMATS:
        raise InputError(f"The plot's file must end in .png, .svg or .html, not {named}.")
    save_chart(shown, path)
