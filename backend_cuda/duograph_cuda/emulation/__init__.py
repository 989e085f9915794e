"""An emulated CUDA device, on which tests run CUDA kernels without a GPU.

It compiles the CUDA sources of the backend for the host processor and runs every thread of a block
as a fibre. Only the device target `CUDA-emulated` uses it.
"""
