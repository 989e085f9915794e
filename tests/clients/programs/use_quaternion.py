"""Use mindspore-quaternion: sums, products and rotations of quaternions, as its page shows them."""

from __future__ import annotations

import sys

import mindspore as ms
import numpy as np
from quaternion.core import Quaternion


def main() -> int:
    """Compute the examples of the package's page in both modes, and check the inverse rotation."""
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        first = Quaternion(ms.Tensor([1, 2, 3, 4], ms.float32))
        second = Quaternion(ms.Tensor([3, 1, 0, 5], ms.float32))
        assert str(first + second) == "[[4. 3. 3. 9.]]", first + second
        assert str(first * second) == "[[-19.  22.   3.  14.]]", first * second
        vector = ms.Tensor([1, 2, 3], ms.float32)
        turn = Quaternion(ms.Tensor([0.5, 0.5, 0.5, 0.5], ms.float32))
        turned = turn | vector
        assert str(turned) == "[[3. 1. 2.]]", turned
        back = turn.conjugate() | turned
        np.testing.assert_allclose(back.asnumpy(), [[1, 2, 3]], rtol=1e-6)
        print(f"mode {mode}: sum {first + second}, product {first * second}, rotation {turned}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
