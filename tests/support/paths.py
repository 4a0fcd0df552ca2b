"""The project's folder, and the one that may be beside it."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "disclosure_pipeline"
DOCS = ROOT / "docs"
SD2011 = ROOT.parent / "shared" / "sd2011"
