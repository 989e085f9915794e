"""The layers of `duograph.mint.nn`, one family in each module.

`duograph.mint.nn` exports them. They hold Parameters and arguments; all computation is done by
functions of `duograph.mint.nn.functional` and `duograph.ops`.
"""
