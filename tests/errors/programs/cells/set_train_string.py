# fault: set_train with a word
# raises: TypeError/ValueError
# at: net.set_train("eval")
# says: eval
# modes: eager
from duograph import nn

net = nn.Dense(3, 2)
net.set_train("eval")
