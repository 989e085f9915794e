# fault: a tuple of Tensors given to a function of one
# raises: TypeError
# at: return ops.norm(pair)
# says: tuple | item [0] has the shape (2, 3)
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def construct(self, image):
        pair = (image, image)
        return ops.norm(pair)


Net()(ops.ones((2, 3)))
