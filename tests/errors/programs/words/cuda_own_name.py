# fault: cuda() of PyTorch, of a Tensor that is not called x
# raises: AttributeError
# at: return image.cuda()
# says: image.move_to("GPU")
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def construct(self, image):
        return image.cuda()


Net()(ops.ones((2, 3)))
