# fault: PyTorch's DataLoader
# raises: AttributeError
# at: loader = dataset.DataLoader(np.ones((8, 3)), batch_size=4)
# says: DataLoader
# modes: eager
import numpy as np

from duograph import dataset

loader = dataset.DataLoader(np.ones((8, 3)), batch_size=4)
