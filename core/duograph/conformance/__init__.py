"""The conformance suite: run it against any installed backend.

    pytest --pyargs duograph.conformance --device NAME

Tests are a table, cases × dtypes, run by a few bodies. `cases` says how a case is written,
`tolerance` what counts as equal, `oracle` what the results are compared with. docs/plugins.md is
the guide for authors of a backend.
"""
