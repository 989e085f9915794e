# fault: a misspelt initialiser of an Embedding
# raises: ValueError/KeyError
# at: table = nn.Embedding(10, 4, embedding_table="nromal")
# says: Embedding | embedding_table | normal
# modes: eager
from duograph import nn

table = nn.Embedding(10, 4, embedding_table="nromal")
