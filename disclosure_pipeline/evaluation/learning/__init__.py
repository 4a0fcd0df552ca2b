"""Learners that an attacker may use, of the extra `prediction`, and the form that they are given keys in."""
