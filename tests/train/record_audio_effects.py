"""Write `audio_effects.json`: what MindSpore computes for the rows of `audio_effects_rows.py`.

python tests/train/record_audio_effects.py      # with a Python that has mindspore
"""

from __future__ import annotations

import json
import pathlib

from audio_effects_rows import ROWS, computed, sampled

if __name__ == "__main__":
    from mindspore.dataset import audio

    found = {}
    remembered = [r for r in ROWS if "True, True, BorderType.CONSTANT" in r[0]]
    for row in [r for r in ROWS if r not in remembered] + remembered:
        result = computed(audio, *row)
        found[" of ".join(row)] = [list(result.shape), str(result.dtype), sampled(result)]
    text = json.dumps(found, indent=0)
    (pathlib.Path(__file__).parent / "audio_effects.json").write_text(text + "\n")
