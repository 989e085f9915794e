"""A rank that exchanges parts of many lengths, for `test_mpi`.

The limit above which MPI gets a part as messages is lowered, so that small arrays cross it on some
ranks and not on others.
"""

from __future__ import annotations

import numpy as np
from duograph.communication import get_group_size, get_rank, init
from duograph.ranks.world import world
from duograph_collectives import mpi


def main() -> None:
    init()
    rank, size, comm = get_rank(), get_group_size(), world().whole.comm
    for limit in (2**30, 64, 7, 1):
        mpi._CHUNK = limit * size
        for seed in range(8):
            counts = np.random.default_rng(seed).choice([0, 1, 3, 7, 8, 40, 100], (size, size))
            sent = [np.arange(n.sum(), dtype=np.uint8) + np.uint8(50 * r)
                    for r, n in enumerate(counts)]  # fmt: skip
            received = np.zeros(counts[:, rank].sum(), np.uint8)
            request = comm.all_to_all(sent[rank], list(counts[rank]), received,
                                      list(counts[:, rank]))  # fmt: skip
            assert request.wait(20), (limit, seed)
            ends = counts.cumsum(1)
            parts = [sent[r][ends[r, rank] - counts[r, rank] : ends[r, rank]] for r in range(size)]
            np.testing.assert_array_equal(received, np.concatenate(parts), str((limit, seed)))
    print("ok")


if __name__ == "__main__":
    main()
