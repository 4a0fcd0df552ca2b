"""The statistics of disclosure, on integer codes: each formula once, with its source."""
