"""The interface between the core and device backends, and the kernel generator backends may use.

`protocol` defines what a backend implements, `registry` finds the installed backends, `codegen`
prints kernels in C-like languages, and `grid` has the kernels of GPU-style devices. The core calls
backends only through `protocol`; nothing here imports a backend's package.
"""
