"""Runs ops and graphs on a backend: eager calls, lowering, memory planning, the step executor.

`lower` turns a graph into an executable; `eager` serves single op calls. Nothing here reads Python
source or derives gradients.

Terms of this package:

- A *handle* is a backend's object that owns a device buffer. The core passes it on and never looks
  inside. The memory is freed when the last reference to the handle is dropped.
- A *prepared call* is a function on handles that a backend made for one op and operand types.
- To *lower* a graph is to make *instructions* from its nodes. Instructions read and write *slots*,
  numbers that stand for the values of a run. A *step* is an instruction that calls a kernel.
- A *region* is a graph node that one generated kernel computes (`passes.fusion`).
- A *native program* is a whole graph as one call, which the backend made (`Backend.link`). Without
  it, Python runs the steps one by one.
- A *donation* is a result that overwrites the buffer of the parameter whose new value it is.
- The *state* of a program consists of the Parameters and captured tensors that it reads and does
  not write.
- *Observers* are objects to which every kernel that runs is reported. Every program has two forms:
  one reports its kernels, the other does not.
"""
