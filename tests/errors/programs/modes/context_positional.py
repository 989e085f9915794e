# fault: the mode as a positional argument
# raises: TypeError
# at: ms.set_context(ms.GRAPH_MODE)
# says: mode
# modes: eager
import duograph as ms

ms.set_context(ms.GRAPH_MODE)
