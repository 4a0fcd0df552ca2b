"""Refusals that tell nothing of what they refuse."""

import pickle
from collections.abc import Callable

import pytest

from disclosure_pipeline.errors import InputError


def refusal(call: Callable[[], object], *secrets: str) -> InputError:
    """The refusal of a call; neither it nor anything that hangs on to it holds a secret."""
    with pytest.raises(InputError) as refused:
        call()
    assert_tells_nothing(refused.value, *secrets)
    return refused.value


def assert_tells_nothing(error: BaseException, *secrets: str) -> None:
    assert error.__cause__ is None and error.__context__ is None
    pickled = pickle.dumps(error)
    shown = f"{error} {error!r} {error.args!r} {vars(error)!r} {pickled!r}"
    assert not [secret for secret in secrets if secret in shown or secret.encode() in pickled]
    again = pickle.loads(pickled)
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
