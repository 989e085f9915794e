/* What the parts of the C extension `duograph_cuda._native` share. It includes no CUDA headers: the driver's functions
 * come as addresses. Everything runs with the GIL held, except the driver's launch itself. */
#ifndef DG_CUDA_NATIVE_H
#define DG_CUDA_NATIVE_H
#define Py_LIMITED_API 0x030a0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <stdint.h>
#include <structmember.h>

/* ---- pool.c: device memory --------------------------------------------------------------------------------- */

typedef struct Block Block;
typedef struct Pool Pool;

/* A handle of device memory. Either it is a block of a pool, or `owner` keeps the memory alive. */
typedef struct {
    PyObject_HEAD
    unsigned long long pointer, nbytes;
    PyObject *owner; /* the pool of `block`, or any object, or NULL */
    Block *block;
    PyObject *weak;
} Memory;

extern PyTypeObject *Memory_type, *Pool_type;
int pool_types(PyObject *module);

/* Return a Memory of `nbytes` bytes from a Pool; `what` names the request in errors. */
PyObject *allocated(PyObject *pool, unsigned long long nbytes, PyObject *what);

/* ---- gate.c: entering the driver ---------------------------------------------------------------------------- */

/* One device as seen by its launches: its context and stream, and who may use them at the moment. */
typedef struct {
    PyObject_HEAD
    int (*get_current)(void **);
    int (*set_current)(void *);
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
    int (*launch_graph)(void *, void *);
    void *context, *stream;
    char blocked;              /* every use must be refused */
    unsigned long holder;      /* the thread that has the device for itself; 0: none */
    int depth;                 /* how often it holds the device */
    int in_flight;             /* launches of other threads that run without the GIL */
    unsigned long long launches;
    struct choice { unsigned long thread; void *stream; } *chosen; /* threads whose launches go to another stream */
    int n_chosen;
    PyObject *lock, *refuse, *failed;
} Gate;

int gate_types(PyObject *module);

static inline void set_reference(PyObject **place, PyObject *value) {
    PyObject *before = *place;
    *place = value;
    Py_INCREF(value);
    Py_XDECREF(before);
}

/* Return 0 if the type was made and added to the module under its name. */
static inline int add_type(PyObject *module, const char *name, PyType_Spec *spec, PyTypeObject **kept) {
    *kept = (PyTypeObject *)PyType_FromSpec(spec);
    if (*kept == NULL) return -1;
    Py_INCREF(*kept);
    return PyModule_AddObject(module, name, (PyObject *)*kept);
}

#endif
