"""The statistics of disclosure, on integer codes.

Written once, in the words of Raab, Nowok & Dibben 2024, "Practical privacy metrics for synthetic data"
(arXiv:2406.16826), cited as [R]. Notation, throughout this room:

- GT is the ground truth, SD one synthetic table; `q` one combination of key values, `t` one target level;
- `d` and `s` are the numbers of GT and SD records with (q, t); `d_q` and `s_q` their sums over t;
- `N_d` and `N_s` are the numbers of all GT and SD records;
- `pd = d / d_q` and `ps = s / s_q`. "pd = 1" is always asked as `d == d_q`: integers, never floats.
"""
