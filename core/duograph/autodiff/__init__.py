"""Reverse-mode differentiation: one gradient rule per op serves the eager tape and graphs.

`linearize` differentiates a graph; `tape` records eager calls; `transforms` has the public
functions (`grad`, `vjp`, ...). No rule may read the values of tensors, because a rule is traced
once into a graph that serves all values.

Terms of this package:

- A *cotangent* is the gradient of the differentiated result with respect to a value. A *residual*
  is a value of the forward pass that the backward pass needs.
- A parameter or operand is *wanted* if its cotangent is to be computed. A value is *active* if it
  depends on a wanted parameter.
- A tensor is *recorded* if it depends on an input of a running derivative. It refers to an *edge*
  of the tape, and the edge to the *node* of the call that computed the tensor. The edge of an input
  is a *leaf*.
- The *level* of a derivative is 1, or 2 if it is inside one or more other derivatives.
- In a graph, whether a cotangent exists may differ between runs. Its *status* says what is known at
  compile time: ABSENT (in no run), PRESENT (in every run), NEUTRAL or GARBAGE (in some runs; in the
  others a placeholder stands for it, a zero that leaves any sum unchanged if NEUTRAL, and an
  arbitrary value if GARBAGE). Its *flag* is
  a bool that says at run time whether it exists (`optional_cotangents`).
- A backward graph is *seeded* with cotangents that parameters already have, and adds to them.
- `halves` is the name of a forward graph with residuals together with its backward graph, as one
  `Linearized`.
"""
