"""The bytes of the store's JSON files."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from support.sampling import examples

from disclosure_pipeline.candidates.files import to_json

_SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
_NAMES = (
    st.text() | st.integers() | st.booleans() | st.none() | st.floats(allow_nan=False, allow_infinity=False)
)
_VALUES = st.recursive(
    _SCALARS,
    lambda values: (
        st.lists(values, max_size=4)
        | st.lists(values, max_size=4).map(tuple)
        | st.dictionaries(_NAMES, values, max_size=4)
    ),
    max_leaves=12,
)


@given(st.dictionaries(_NAMES, _VALUES, max_size=4))
@examples(20, 100)
def test_a_file_has_the_bytes_of_json_with_an_indent(content: dict[Any, Any]) -> None:
    """Also where a name is no text, or comes twice once it is."""
    expected = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    assert to_json(content) == expected.encode()
