"""The errors of this package. No message ever holds a value of the ground truth."""


class DisclosurePipelineError(Exception):
    """Base of every error that this package raises by itself."""


class ComparabilityWarning(UserWarning):
    """The tables may not be coded alike, so that risks read too low: the message says in which column."""


class HoldoutWarning(UserWarning):
    """The holdout shares records with the ground truth, so that it hides what the synthetic table leaks."""


class InputError(DisclosurePipelineError, ValueError):
    """The tables or arguments cannot be measured as asked: the message says what, where and what to do."""
