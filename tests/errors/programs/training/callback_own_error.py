# fault: an error in the user's callback
# raises: AttributeError
# at: print(run_context.loss)
# says: loss
# modes: eager
import numpy as np

import duograph as ms
from duograph import dataset, nn


class Print(ms.train.Callback):
    def on_train_step_end(self, run_context):
        print(run_context.loss)


data = dataset.NumpySlicesDataset((np.ones((8, 3), np.float32), np.ones((8, 2), np.float32)), ["x", "y"])
net = nn.Dense(3, 2)
model = ms.train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
model.train(1, data.batch(4), callbacks=[Print()])
