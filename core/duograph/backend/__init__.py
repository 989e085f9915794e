"""The seam to devices: what a backend is, how it is found, and the C-family printer it
may use.
"""
