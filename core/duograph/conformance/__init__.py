"""The conformance suite: tests that any installed backend computes what the ops promise.

    pytest --pyargs duograph.conformance --device NAME

A few test functions run over a table of cases × dtypes, where a case says how to test one op.
`cases` documents how to write a case, `tolerance` defines equality, and `oracle` computes the
expected results. docs/plugins.md is the guide for authors of a backend.
"""
