"""Errors of pydantic in words, without the values that caused them."""

from __future__ import annotations

from pydantic import ValidationError
from pydantic_core import ErrorDetails


def describe_errors(error: ValidationError) -> list[str]:
    """Where something is wrong, and pydantic's message for each place; it holds no value that was read."""
    return [f"{_place(detail)}: {detail['msg']}" for detail in error.errors(include_url=False)]


def locate_errors(error: ValidationError) -> list[str]:
    """Where something is wrong, and of what type; no message, which may quote what a check of ours read."""
    return [f"{_place(detail)} ({detail['type']})" for detail in error.errors(include_url=False)]


def _place(detail: ErrorDetails) -> str:
    return ".".join(map(str, detail["loc"]))
