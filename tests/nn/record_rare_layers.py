"""Write `rare_layers.json`: what MindSpore computes for the rows of `rare_layers_rows.py`.

python tests/nn/record_rare_layers.py      # with a Python that has mindspore
"""

from __future__ import annotations

import json
import pathlib

from rare_layers_rows import ROWS, TRAINED, computed, trained

if __name__ == "__main__":
    import mindspore as ms

    found = {source: computed(ms, source, inputs) for source, inputs in ROWS}
    found |= {source: trained(ms, source) for source in TRAINED}
    text = json.dumps(found, indent=0)
    (pathlib.Path(__file__).parent / "rare_layers.json").write_text(text + "\n")
