# fault: a generator that yields arrays instead of tuples for two columns
# raises: ValueError/RuntimeError/TypeError
# at: for row in data:
# says: 2 | column | generator_single_value.py:16 | a tuple
# modes: eager
import numpy as np

from duograph import dataset


def rows():
    for i in range(4):
        yield np.float32(i)


data = dataset.GeneratorDataset(rows, ["x", "y"])
for row in data:
    print(row)
