# fault: eval() of PyTorch, of a network that is not called net
# raises: AttributeError
# at: model.eval()
# says: model.set_train(False)
# modes: eager
from duograph import nn

model = nn.Dense(3, 2)
model.eval()
