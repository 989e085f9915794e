"""The copy kernel of STREAM in NumPy, on two threads, into allocated memory."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from . import Case, inputs, repeat


def copy_large():
    source, target = inputs.large()
    half = inputs.LARGE // 2
    pool = ThreadPoolExecutor(2)
    halves = [(target[:half], source[:half]), (target[half:], source[half:])]

    def copy():
        for _ in pool.map(lambda pair: np.copyto(*pair), halves):
            pass

    return Case(repeat(copy), lambda: [target])


CASES = {"copy_large": copy_large}
