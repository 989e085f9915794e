/* Entering the driver: the right context, nobody in between, and kernel launches. */
#include "native.h"

#define MOST_ARGUMENTS 256

static PyTypeObject *Gate_type, *Kernel_type, *Computation_type;

/* ---- the type Gate -------------------------------------------------------------------------------------------------- */

static int Gate_init(Gate *gate, PyObject *arguments, PyObject *named) {
    static char *names[] = {"get_current", "set_current", "launch", "context", "stream",
                            "lock", "refuse", "failed", "launch_graph", NULL};
    unsigned long long get, set, launch, context, stream, launch_graph = 0;
    PyObject *lock, *refuse, *failed;
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "KKKKKOOO|K", names, &get, &set, &launch, &context, &stream, &lock,
                                     &refuse, &failed, &launch_graph))
        return -1;
    *(void **)&gate->get_current = (void *)(uintptr_t)get;
    *(void **)&gate->set_current = (void *)(uintptr_t)set;
    *(void **)&gate->launch = (void *)(uintptr_t)launch;
    *(void **)&gate->launch_graph = (void *)(uintptr_t)launch_graph;
    gate->context = (void *)(uintptr_t)context;
    gate->stream = (void *)(uintptr_t)stream;
    set_reference(&gate->lock, lock);
    set_reference(&gate->refuse, refuse);
    set_reference(&gate->failed, failed);
    return 0;
}

/* Wait until no other thread has the device for itself. */
static int pass(Gate *gate) {
    /* a blocked gate is not waited for: in a forked process the holder does not exist */
    while (!gate->blocked && gate->holder && gate->holder != PyThread_get_thread_ident()) {
        PyObject *answer = PyObject_CallMethod(gate->lock, "acquire", NULL);
        if (!answer) return -1;
        Py_DECREF(answer);
        answer = PyObject_CallMethod(gate->lock, "release", NULL);
        if (!answer) return -1;
        Py_DECREF(answer);
    }
    if (!gate->blocked) return 0;
    PyObject *answer = PyObject_CallNoArgs(gate->refuse);
    if (answer) {
        Py_DECREF(answer);
        PyErr_SetString(PyExc_SystemError, "the device is blocked, and nobody says why");
    }
    return -1;
}

static int fail(Gate *gate, int code, PyObject *what) {
    PyObject *answer = PyObject_CallFunction(gate->failed, "iO", code, what);
    if (answer) {
        Py_DECREF(answer);
        PyErr_Format(PyExc_SystemError, "%S: error %d, and nobody raised it", what, code);
    }
    return -1;
}

static PyObject *fail_at(Gate *gate, int code, const char *what) {
    PyObject *text = PyUnicode_FromString(what);
    if (text) fail(gate, code, text);
    Py_XDECREF(text);
    return NULL;
}

/* Make the device's context current; `before` becomes the one to restore, or NULL. */
static int entered(Gate *gate, void **before) {
    *before = NULL;
    int code = gate->get_current(before);
    if (*before == gate->context) *before = NULL;
    else if (!code) code = gate->set_current(gate->context);
    return code;
}

static void left(Gate *gate, void *before) {
    if (before) gate->set_current(before); /* another library's */
}

/* Return the stream of this thread's launches. */
static void *stream_of(Gate *gate) {
    if (gate->n_chosen) {
        unsigned long me = PyThread_get_thread_ident();
        for (int k = 0; k < gate->n_chosen; k++)
            if (gate->chosen[k].thread == me) return gate->chosen[k].stream;
    }
    return gate->stream;
}

static PyObject *Gate_choose(Gate *gate, PyObject *arguments) {
    unsigned long long stream;
    unsigned long thread;
    int k = 0;
    if (!PyArg_ParseTuple(arguments, "Kk", &stream, &thread)) return NULL;
    while (k < gate->n_chosen && gate->chosen[k].thread != thread) k++;
    if (!stream) {
        if (k < gate->n_chosen) gate->chosen[k] = gate->chosen[--gate->n_chosen];
        Py_RETURN_NONE;
    }
    if (k == gate->n_chosen) {
        struct choice *more = PyMem_Realloc(gate->chosen, (k + 1) * sizeof *more);
        if (!more) return PyErr_NoMemory();
        gate->chosen = more;
        gate->n_chosen++;
    }
    gate->chosen[k].thread = thread;
    gate->chosen[k].stream = (void *)(uintptr_t)stream;
    Py_RETURN_NONE;
}

static PyObject *Gate_enter(Gate *gate, PyObject *unused) {
    void *before;
    if (pass(gate)) return NULL;
    int code = entered(gate, &before);
    return code ? fail_at(gate, code, "cuCtxSetCurrent") : PyLong_FromVoidPtr(before);
}

static PyObject *Gate_leave(Gate *gate, PyObject *before) {
    void *context = PyLong_AsVoidPtr(before);
    if (PyErr_Occurred()) return NULL;
    left(gate, context);
    Py_RETURN_NONE;
}

static PyObject *Gate_launch_graph(Gate *gate, PyObject *graph) {
    void *before, *handle = PyLong_AsVoidPtr(graph), *stream = stream_of(gate);
    int code;
    if (PyErr_Occurred() || pass(gate)) return NULL;
    gate->in_flight++;
    gate->launches++;
    Py_BEGIN_ALLOW_THREADS
    code = entered(gate, &before);
    if (!code) code = gate->launch_graph(handle, stream);
    left(gate, before);
    Py_END_ALLOW_THREADS
    gate->in_flight--;
    if (code) return fail_at(gate, code, "cuGraphLaunch");
    Py_RETURN_NONE;
}

static PyObject *Gate_hold(Gate *gate, PyObject *unused) {
    gate->holder = PyThread_get_thread_ident();
    gate->depth++;
    while (gate->in_flight) {
        Py_BEGIN_ALLOW_THREADS /* the launch of another thread ends */
        Py_END_ALLOW_THREADS
    }
    Py_RETURN_NONE;
}

static PyObject *Gate_let_go(Gate *gate, PyObject *unused) {
    if (--gate->depth == 0) gate->holder = 0;
    Py_RETURN_NONE;
}

static int Gate_traverse(Gate *gate, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE((PyObject *)gate));
    Py_VISIT(gate->lock);
    Py_VISIT(gate->refuse);
    Py_VISIT(gate->failed);
    return 0;
}

static int Gate_clear(Gate *gate) {
    Py_CLEAR(gate->lock);
    Py_CLEAR(gate->refuse);
    Py_CLEAR(gate->failed);
    return 0;
}

static void Gate_dealloc(Gate *gate) {
    PyTypeObject *type = Py_TYPE((PyObject *)gate);
    PyObject_GC_UnTrack(gate);
    Gate_clear(gate);
    PyMem_Free(gate->chosen);
    freefunc release_object = PyType_GetSlot(type, Py_tp_free);
    release_object(gate);
    Py_DECREF(type);
}

static PyMethodDef Gate_methods[] = {
    {"choose", (PyCFunction)Gate_choose, METH_VARARGS,
     "Make the launches of a thread go to a stream; 0 stands for the gate's own stream."},
    {"enter", (PyCFunction)Gate_enter, METH_NOARGS,
     "Make the device's context current on this thread; return the other context that was current, or 0."},
    {"leave", (PyCFunction)Gate_leave, METH_O, "Make the context that `enter` returned current again."},
    {"hold", (PyCFunction)Gate_hold, METH_NOARGS,
     "Keep other threads from launching until `let_go`. The caller must hold the lock, and wait for running launches."},
    {"let_go", (PyCFunction)Gate_let_go, METH_NOARGS, "Let other threads launch again, after `hold`."},
    {"launch_graph", (PyCFunction)Gate_launch_graph, METH_O, "Launch an executable CUDA graph, and do not wait."},
    {NULL}};
static PyMemberDef Gate_members[] = {
    {"blocked", T_BOOL, offsetof(Gate, blocked), 0, "whether every use is refused"},
    {"launches", T_ULONGLONG, offsetof(Gate, launches), 0, "number of launches"},
    {NULL}};
static PyType_Slot Gate_slots[] = {
    {Py_tp_doc, "The access of launches to a device: its context and streams, and which threads may use them at the moment."},
    {Py_tp_init, Gate_init},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_dealloc, Gate_dealloc},
    {Py_tp_traverse, Gate_traverse},
    {Py_tp_clear, Gate_clear},
    {Py_tp_methods, Gate_methods},
    {Py_tp_members, Gate_members},
    {0}};
static PyType_Spec Gate_spec = {"duograph_cuda._native.Gate", sizeof(Gate), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                                Gate_slots};

/* ---- the type Kernel ------------------------------------------------------------------------------------------------ */

typedef struct {
    PyObject_HEAD
    Gate *gate;
    void *function;
    unsigned grid[3], block[3], shared;
    Py_ssize_t buffers, scalars;
    uint64_t *values; /* the numbers that follow the buffers */
    PyObject *name, *module;
} Kernel;

static PyObject *Kernel_new(PyTypeObject *type, PyObject *arguments, PyObject *named) {
    static char *names[] = {"gate", "function", "groups", "size", "shared", "buffers", "scalars", "name", "module", NULL};
    Gate *gate;
    unsigned long long function;
    unsigned grid[3], block[3], shared;
    Py_ssize_t buffers, nbytes;
    const char *scalars;
    PyObject *name, *module;
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "O!K(III)(III)Iny#UO", names, Gate_type, &gate, &function, &grid[0],
                                     &grid[1], &grid[2], &block[0], &block[1], &block[2], &shared, &buffers, &scalars,
                                     &nbytes, &name, &module))
        return NULL;
    if (buffers < 0 || buffers + nbytes / 8 > MOST_ARGUMENTS || nbytes % 8)
        return PyErr_Format(PyExc_ValueError, "%U: got %zd buffers and %zd bytes of numbers; wanted at most %d arguments of 8 "
                            "bytes", name, buffers, nbytes, MOST_ARGUMENTS);
    uint64_t *values = PyMem_Malloc(nbytes + 8);
    if (!values) return PyErr_NoMemory();
    memcpy(values, scalars, nbytes);
    Kernel *made = PyObject_New(Kernel, type);
    if (!made) {
        PyMem_Free(values);
        return NULL;
    }
    made->gate = (Gate *)Py_NewRef((PyObject *)gate);
    made->function = (void *)(uintptr_t)function;
    memcpy(made->grid, grid, sizeof grid);
    memcpy(made->block, block, sizeof block);
    made->shared = shared;
    made->buffers = buffers;
    made->scalars = nbytes / 8;
    made->values = values;
    made->name = Py_NewRef(name);
    made->module = Py_NewRef(module);
    return (PyObject *)made;
}

/* Launch in the device's context, without the GIL; return the driver's code. */
static int launched(Kernel *kernel, void **parameters) {
    Gate *gate = kernel->gate;
    const unsigned *g = kernel->grid, *b = kernel->block;
    void *before, *stream = stream_of(gate);
    int code;
    gate->in_flight++;
    gate->launches++;
    Py_BEGIN_ALLOW_THREADS
    code = entered(gate, &before);
    if (!code)
        code = gate->launch(kernel->function, g[0], g[1], g[2], b[0], b[1], b[2], kernel->shared, stream, parameters, NULL);
    left(gate, before);
    Py_END_ALLOW_THREADS
    gate->in_flight--;
    return code;
}

/* Launch on buffers, of which `result` is one more if it is not NULL; return 0 if that was possible. */
static int launched_on(Kernel *kernel, PyObject *const *handles, Py_ssize_t count, PyObject *result) {
    uint64_t slots[MOST_ARGUMENTS];
    void *parameters[MOST_ARGUMENTS];
    Py_ssize_t n = kernel->buffers;
    if (count + (result != NULL) != n) {
        PyErr_Format(PyExc_TypeError, "%U: got %zd buffers; wanted %zd", kernel->name, count, n - (result != NULL));
        return -1;
    }
    if ((kernel->gate->holder || kernel->gate->blocked) && pass(kernel->gate)) return -1;
    for (Py_ssize_t k = 0; k < n; k++) {
        PyObject *handle = k < count ? handles[k] : result;
        if (!PyObject_TypeCheck(handle, Memory_type)) {
            PyErr_Format(PyExc_TypeError, "%U: got %R; wanted a Memory", kernel->name, handle);
            return -1;
        }
        slots[k] = ((Memory *)handle)->pointer;
        parameters[k] = &slots[k];
    }
    for (Py_ssize_t k = 0; k < kernel->scalars; k++) parameters[n + k] = &kernel->values[k];
    int code = launched(kernel, parameters);
    return code ? fail(kernel->gate, code, kernel->name) : 0;
}

static PyObject *Kernel_launch(Kernel *kernel, PyObject *const *handles, Py_ssize_t count) {
    return launched_on(kernel, handles, count, NULL) ? NULL : Py_NewRef(Py_None);
}

static void Kernel_dealloc(Kernel *kernel) {
    PyTypeObject *type = Py_TYPE((PyObject *)kernel);
    Py_DECREF((PyObject *)kernel->gate);
    Py_DECREF(kernel->name);
    Py_DECREF(kernel->module);
    PyMem_Free(kernel->values);
    PyObject_Free(kernel);
    Py_DECREF(type);
}

static PyMethodDef Kernel_methods[] = {
    {"launch", (PyCFunction)(void (*)(void))Kernel_launch, METH_FASTCALL, "Launch on these buffers, and do not wait."},
    {NULL}};
static PyType_Slot Kernel_slots[] = {
    {Py_tp_doc, "A kernel with its grid and scalar arguments."},
    {Py_tp_new, Kernel_new},
    {Py_tp_methods, Kernel_methods},
    {Py_tp_dealloc, Kernel_dealloc},
    {0}};
static PyType_Spec Kernel_spec = {"duograph_cuda._native.Kernel", sizeof(Kernel), 0, Py_TPFLAGS_DEFAULT, Kernel_slots};

/* ---- the type Computation ------------------------------------------------------------------------------------------- */

typedef struct {
    PyObject_HEAD
    Kernel *kernel;
    PyObject *pool, *what;
    unsigned long long nbytes;
} Computation;

static PyObject *Computation_new(PyTypeObject *type, PyObject *arguments, PyObject *named) {
    static char *names[] = {"kernel", "pool", "nbytes", "what", NULL};
    Kernel *kernel;
    PyObject *pool, *what;
    unsigned long long nbytes;
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "O!O!KU", names, Kernel_type, &kernel, Pool_type, &pool, &nbytes,
                                     &what))
        return NULL;
    Computation *made = PyObject_New(Computation, type);
    if (!made) return NULL;
    made->kernel = (Kernel *)Py_NewRef((PyObject *)kernel);
    made->pool = Py_NewRef(pool);
    made->what = Py_NewRef(what);
    made->nbytes = nbytes;
    return (PyObject *)made;
}

static PyObject *Computation_run(Computation *computation, PyObject *const *handles, Py_ssize_t count) {
    PyObject *result = allocated(computation->pool, computation->nbytes, computation->what);
    if (result && launched_on(computation->kernel, handles, count, result)) Py_CLEAR(result);
    return result;
}

static void Computation_dealloc(Computation *computation) {
    PyTypeObject *type = Py_TYPE((PyObject *)computation);
    Py_DECREF((PyObject *)computation->kernel);
    Py_DECREF(computation->pool);
    Py_DECREF(computation->what);
    PyObject_Free(computation);
    Py_DECREF(type);
}

static PyMethodDef Computation_methods[] = {
    {"run", (PyCFunction)(void (*)(void))Computation_run, METH_FASTCALL,
     "Allocate the result, launch the kernel on these buffers and the result, and return the result."},
    {NULL}};
static PyType_Slot Computation_slots[] = {
    {Py_tp_doc, "A kernel with one result, its last buffer, which each call allocates from a pool."},
    {Py_tp_new, Computation_new},
    {Py_tp_methods, Computation_methods},
    {Py_tp_dealloc, Computation_dealloc},
    {0}};
static PyType_Spec Computation_spec = {"duograph_cuda._native.Computation", sizeof(Computation), 0, Py_TPFLAGS_DEFAULT,
                                       Computation_slots};

int gate_types(PyObject *module) {
    return add_type(module, "Gate", &Gate_spec, &Gate_type) || add_type(module, "Kernel", &Kernel_spec, &Kernel_type) ||
           add_type(module, "Computation", &Computation_spec, &Computation_type);
}

/* ---- the module ------------------------------------------------------------------------------------------------------- */

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_native", "Device memory and kernel launches of the CUDA backend, in C.", -1, NULL};

PyMODINIT_FUNC PyInit__native(void) {
    PyObject *module = PyModule_Create(&definition);
    if (module && (pool_types(module) || gate_types(module))) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
