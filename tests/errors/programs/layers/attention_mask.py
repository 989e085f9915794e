# fault: an attention mask of another shape
# raises: ValueError
# at: y = attention(x, x, x, attn_mask=ops.ones((4, 4)).astype(ms.bool_))
# says: mask
# modes: eager
import duograph as ms
from duograph import nn, ops

attention = nn.MultiheadAttention(8, 2)
x = ops.ones((5, 2, 8))
y = attention(x, x, x, attn_mask=ops.ones((4, 4)).astype(ms.bool_))
