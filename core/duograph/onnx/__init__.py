"""ONNX models: `load` reads one as a Cell; `duograph.export` with file_format="ONNX" writes one.

The package onnx parses and checks files (``pip install duograph[onnx]``). `import duograph` does
not import this package, because onnx is optional. Reading a file must never execute code from it.
"""

from __future__ import annotations

from .reading import OnnxCell, load

__all__ = ["OnnxCell", "load"]
