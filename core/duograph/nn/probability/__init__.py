"""Probability distributions and bijectors (`mindspore.nn.probability`).

Users import `nn.probability.distribution` and `nn.probability.bijector`; `import duograph` loads
neither. The formulas are made of public ops, so they have gradients and can be compiled.
"""

from __future__ import annotations

from . import bijector, distribution

__all__ = ["bijector", "distribution"]
