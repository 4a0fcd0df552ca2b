"""Tests of tables that share few values, which is warned of: that is the subject of test_comparability.py."""

import pytest

FEW_SHARED_VALUES = pytest.mark.filterwarnings("ignore::disclosure_pipeline.errors.ComparabilityWarning")
