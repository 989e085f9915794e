# fault: a shard number past the shards
# raises: ValueError
# at: data = dataset.NumpySlicesDataset(np.ones((8, 3)), ["x"], num_shards=2, shard_id=2)
# says: shard_id | num_shards
# modes: eager
import numpy as np

from duograph import dataset

data = dataset.NumpySlicesDataset(np.ones((8, 3)), ["x"], num_shards=2, shard_id=2)
