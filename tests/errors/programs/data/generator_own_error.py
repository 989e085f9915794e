# fault: an error in the user's dataset class
# raises: KeyError/RuntimeError
# at: return self.rows[i]["image"], self.rows[i]["label"]
# says: label
# modes: eager
import numpy as np

from duograph import dataset


class Source:
    def __init__(self):
        self.rows = [{"image": np.ones(3)}] * 4

    def __getitem__(self, i):
        return self.rows[i]["image"], self.rows[i]["label"]

    def __len__(self):
        return 4


data = dataset.GeneratorDataset(Source(), ["x", "y"])
for row in data:
    print(row)
