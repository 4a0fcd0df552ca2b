"""Learners that an attacker may use (extra `prediction`), and the encoding of keys for them."""
