"""Write `experimental_values.json`: what MindSpore's experimental optimisers and schedules compute.

    python tests/train/record_experimental.py      # with a Python that has mindspore

Every optimiser takes four steps on two groups; every schedule eight.
"""

from __future__ import annotations

import json
import pathlib

import numpy as np
from experimental_rows import CLOSED, OPTIMIZERS, SCHEDULES, gradients, rates_of, trained

if __name__ == "__main__":
    import mindspore as ms
    from mindspore.experimental import optim

    found = {source: trained(ms, optim, source, gradients()) for source in OPTIMIZERS}
    found |= {source: rates_of(ms, optim, source) for source in SCHEDULES}
    found |= {f"{source} at": rates_of(ms, optim, source, closed=True) for source in CLOSED}
    text = json.dumps(found, indent=1, default=lambda v: np.asarray(v).tolist())
    (pathlib.Path(__file__).parent / "experimental_values.json").write_text(text + "\n")
