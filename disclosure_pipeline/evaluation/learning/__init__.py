"""Learners that an attacker may use, and the form in which they are given the keys.

Only this room imports scikit-learn, inside its functions: it is the extra `prediction`.
"""
