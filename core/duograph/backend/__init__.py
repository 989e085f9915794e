"""The interface between the core and device backends, and kernel generators for backends.

`protocol` defines what a backend implements, `registry` finds the installed backends, `codegen`
generates kernels in C-like languages, and `grid` has the kernels of GPU-style devices. The core
calls backends only through `protocol`; nothing here imports a backend's package.

Terms of this package:

- A *handle* is a backend's object that owns a device buffer; the core never looks inside.
- A *region*, or fused region, is a graph of ops that one kernel computes.
- A *work item* is one run of a kernel function on a device: a GPU thread, or, on a device that is
  a CPU, a thread that computes a longer range. Work items of a *group* (a thread block) run
  together and share memory; the groups of a launch are its *grid*. A *lane* is the position of a
  work item in its group or warp.
- A *pack* is a few adjacent elements that a work item loads or stores in one access.
- A *launch* is one start of a kernel on a device, with its buffers and scalar arguments; a *plan*
  is the list of launches that compute one op call.
- A *slot* is the number of a run-time value of a compiled program.
"""
