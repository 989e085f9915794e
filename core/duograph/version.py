"""Defines two versions: that of MindSpore's API which duograph follows, and duograph's own.

`mindspore.version.__version__` is the first. `duograph.__version__` is the second, until
`compat.install` makes `import mindspore` mean duograph; from then on it is the first, too. The
module imports nothing.
"""

__all__ = ["OWN", "__version__"]

__version__ = "2.10.0"  # the version of MindSpore whose API duograph follows
OWN = "0.1.0"
