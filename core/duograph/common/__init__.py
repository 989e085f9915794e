"""The package `mindspore.common`: initializers, and the older paths of dtypes, Tensor, Parameter.

Users import from it. It contains the initializers; `compat` resolves the older paths.
"""
