"""The example data of the demo: an invented survey, an honest synthesis of it, and one that leaks."""
