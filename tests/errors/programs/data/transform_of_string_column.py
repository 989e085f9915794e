# fault: ToTensor of text
# raises: TypeError/RuntimeError/ValueError
# at: x = to_tensor("cat.png")
# says: ToTensor | str
# modes: eager
from duograph.dataset import vision

to_tensor = vision.ToTensor()
x = to_tensor("cat.png")
