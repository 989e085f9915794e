"""An emulated CUDA device for tests: the backend's own CUDA source runs on the processor, a fibre
for each thread.
"""
