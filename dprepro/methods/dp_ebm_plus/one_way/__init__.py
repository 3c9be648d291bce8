"""Version 22 of DP-EBM+, on trial beside version 21: one way for few rows and for many.

`dprepro.methods.dp_ebm_plus.one_way.algorithm` has it on one page.
"""
