"""The conformance suite: tests that any installed backend computes what the ops promise.

    pytest --pyargs duograph.conformance --device NAME

A few test bodies run over a table of cases × dtypes. `cases` documents how to write a case,
`tolerance` defines equality, and `oracle` computes the expected results. docs/plugins.md is the
guide for authors of a backend.
"""
