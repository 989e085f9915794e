# fault: a number instead of a loss scale manager
# raises: TypeError/ValueError
# at: model = ms.train.Model(net, nn.MSELoss(), optimizer, loss_scale_manager=1024)
# says: int | LossScale
# modes: eager
import duograph as ms
from duograph import nn

net = nn.Dense(3, 2)
optimizer = nn.SGD(net.trainable_params(), 0.1)
model = ms.train.Model(net, nn.MSELoss(), optimizer, loss_scale_manager=1024)
