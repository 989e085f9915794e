# fault: Resize with a word
# raises: TypeError
# at: resize = vision.Resize("224")
# says: size
# modes: eager
from duograph.dataset import vision

resize = vision.Resize("224")
