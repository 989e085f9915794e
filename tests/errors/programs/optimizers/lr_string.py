# fault: a learning rate read from a file as text
# raises: TypeError
# at: optimizer = nn.Adam(net.trainable_params(), learning_rate=config["lr"])
# says: 0.001 | learning_rate
# modes: eager
from duograph import nn

config = {"lr": "0.001"}
net = nn.Dense(3, 2)
optimizer = nn.Adam(net.trainable_params(), learning_rate=config["lr"])
