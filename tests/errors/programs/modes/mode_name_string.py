# fault: the mode given as text
# raises: ValueError/TypeError
# at: ms.set_context(mode="GRAPH")
# says: GRAPH | GRAPH_MODE
# modes: eager
import duograph as ms

ms.set_context(mode="GRAPH")
