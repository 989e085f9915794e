"""The two versions: of MindSpore's API, and of duograph itself.

`mindspore.version.__version__` is the first; `duograph.__version__` is the second, except where
`compat.install` has let `import mindspore` mean duograph. The module imports nothing.
"""

__all__ = ["OWN", "__version__"]

__version__ = "2.10.0"  # the version of MindSpore whose API duograph follows
OWN = "0.1.0"
