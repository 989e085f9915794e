"""ONNX models: `load` reads one as a Cell; `duograph.export` with file_format="ONNX" writes one.

The package onnx parses and checks files (``pip install duograph[onnx]``). Nothing here is imported
by `import duograph`, and nothing in a file may run as code.
"""

from __future__ import annotations

from .reading import OnnxCell, load

__all__ = ["OnnxCell", "load"]
