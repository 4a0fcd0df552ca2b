"""The demo: an invented survey, an honest and a leaky synthesis of it, and a gate that judges them."""
