"""The package `mindspore.common`: initializers, and the older paths of dtypes, Tensor, Parameter.

Users import from it. The package contains the initializers only; `compat` resolves the older paths.
"""
