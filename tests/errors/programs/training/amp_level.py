# fault: an unknown amp level
# raises: ValueError
# at: model = ms.train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1), amp_level="O5")
# says: O5 | O2
# modes: eager
import duograph as ms
from duograph import nn

net = nn.Dense(3, 2)
model = ms.train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1), amp_level="O5")
