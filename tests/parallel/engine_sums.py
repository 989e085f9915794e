"""Every rank compares sums in the order of the engine with those of the fixed order."""

import duograph as ms
import numpy as np
from duograph import ops
from duograph.communication import get_rank

for dtype in (np.float32, np.float16, np.int64):
    x = ms.Tensor((np.random.default_rng(get_rank()).normal(size=3000) * 9).astype(dtype))
    ms.set_context(engine_sums=False)
    fixed = ops.AllReduce()(x).asnumpy()
    ms.set_context(engine_sums=True)
    np.testing.assert_allclose(ops.AllReduce()(x).asnumpy(), fixed, rtol=1e-5, atol=1e-5)
