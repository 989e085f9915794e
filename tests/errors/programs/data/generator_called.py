# fault: a generator of a source without length or getitem
# raises: TypeError/ValueError
# at: data = dataset.GeneratorDataset(Source(), ["x"])
# says: Source
# modes: eager
import numpy as np

from duograph import dataset


class Source:
    def read(self, index):
        return np.ones(3)


data = dataset.GeneratorDataset(Source(), ["x"])
