# fault: two Parameters with one name
# raises: ValueError
# at: y = net(ops.ones((1, 3)))
# says: weight | name
# modes: eager graph
from duograph import Parameter, nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.a = Parameter(ops.ones((3,)), name="weight")
        self.b = Parameter(ops.ones((3,)), name="weight")

    def construct(self, x):
        return x * self.a + self.b


net = Net()
y = net(ops.ones((1, 3)))
