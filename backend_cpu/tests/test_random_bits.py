"""Random bits against Philox 4x32-10 in Python."""

import numpy as np
from harness import run


def test_random_bits_are_philox():
    def block(counter, key):
        c, k = list(counter), list(key)
        for _ in range(10):
            a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [(b >> 32) ^ c[1] ^ k[0], b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k[1], a & 0xFFFFFFFF]
            k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
        return c

    # a known answer of the Random123 distribution
    assert block([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    state = np.array([0xA4093822, 0x299F31D0, 7, 9], np.uint32)
    for n in (1, 63, 64, 1000, 100001):
        got = run("random_bits", [state], np.empty(n, np.uint32), shape=(n,))
        for i in {0, n // 2, n - 1}:
            b = i // 4
            assert got[i] == block([b & 0xFFFFFFFF, b >> 32, 7, 9], [0xA4093822, 0x299F31D0])[i % 4]
