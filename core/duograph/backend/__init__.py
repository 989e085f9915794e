"""The interface between the core and device backends, and the kernel generator backends may use.

`interface` defines what a backend implements, `registry` finds the installed ones, and `codegen`
prints kernels in C-like languages. The core calls backends only through this interface.
"""
