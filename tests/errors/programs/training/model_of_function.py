# fault: a function as the network of a Model
# raises: TypeError
# at: model = ms.train.Model(lambda x: x * 2, loss_fn=nn.MSELoss())
# says: function | Cell
# modes: eager
import duograph as ms
from duograph import nn

model = ms.train.Model(lambda x: x * 2, loss_fn=nn.MSELoss())
