"""MindSpore's home of initializers; dtypes, Tensor and Parameter are served here by their old paths
too.
"""
