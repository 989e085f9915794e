# fault: ReduceLROnPlateau of a quantity that does not exist
# raises: ValueError/KeyError/TypeError
# at: model.fit(2, data.batch(4), data.batch(4), callbacks=[plateau])
# says: val_mae | mae
# modes: eager
import numpy as np

import duograph as ms
from duograph import dataset, nn

data = dataset.NumpySlicesDataset((np.ones((8, 3), np.float32), np.ones((8, 2), np.float32)), ["x", "y"])
net = nn.Dense(3, 2)
model = ms.train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1), {"mae"})
plateau = ms.train.ReduceLROnPlateau(monitor="val_mae")
model.fit(2, data.batch(4), data.batch(4), callbacks=[plateau])
