# fault: num_shards without shard_id
# raises: ValueError/RuntimeError
# at: data = dataset.NumpySlicesDataset(np.ones((8, 3)), ["x"], num_shards=2)
# says: shard_id
# modes: eager
import numpy as np

from duograph import dataset

data = dataset.NumpySlicesDataset(np.ones((8, 3)), ["x"], num_shards=2)
