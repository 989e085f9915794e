# fault: batch of rows with different shapes
# raises: ValueError/RuntimeError
# at: for (x,) in data:
# says: (1,) | (2,) | batch_ragged.py:16
# modes: eager
import numpy as np

from duograph import dataset


def rows():
    for n in range(1, 5):
        yield (np.ones(n, np.float32),)


data = dataset.GeneratorDataset(rows, ["x"]).batch(2)
for (x,) in data:
    print(x.shape)
