# fault: save_graphs with an unknown level
# raises: ValueError/TypeError
# at: ms.set_context(save_graphs="yes")
# says: save_graphs | 2 or True
# modes: eager
import duograph as ms

ms.set_context(save_graphs="yes")
