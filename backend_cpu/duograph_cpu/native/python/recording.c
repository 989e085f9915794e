/* Runs kernel calls while a profile collects, and stores when each began and ended.
 *
 * The module has one function, `watched_call`. What it returns does in C what `take` of the profile's recorder does in
 * Python, and stores the same values in the same list. Python takes one to two microseconds for that, as long as a
 * small kernel. */
#define Py_LIMITED_API 0x030a0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <pythread.h>
#include <time.h>

/* An event whose end time is a multiple of this searches the whole stack again, to correct a remembered line; as
 * `_CHECKED` of the recorder. */
#define CHECKED 1024

/* What a function that `watched_call` returned knows: the items of its tuple. */
enum { STATE, RUN, WORK, OTHERWISE, SITES, ITEMS };
/* The items of `state.log`, and of the list of its limits. */
enum { LOG, VALUES, LIMITS };
enum { FULL, NEXT_SAMPLE };

static PyObject *s_log, *s_walk, *s_drop, *s_sample, *s_sites, *s_spans, *s_device, *s_offset, *getframe, *zero;

/* Return the nanoseconds of `time.perf_counter_ns`. */
static long long now(void) {
    struct timespec t;
#ifdef __APPLE__
    clock_gettime(CLOCK_UPTIME_RAW, &t);
#else
    clock_gettime(CLOCK_MONOTONIC, &t);
#endif
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static PyObject *held(PyObject *value) {
    Py_INCREF(value);
    return value;
}

/* Return whether the frame `depth` levels above runs the instruction at byte `offset` of a code object; -1 on errors. */
static int runs(PyObject *depth, PyObject *code, PyObject *offset) {
    PyObject *frame = PyObject_CallFunctionObjArgs(getframe, depth, NULL), *found;
    int same;
    if (!frame) {
        if (!PyErr_ExceptionMatches(PyExc_ValueError)) return -1;
        PyErr_Clear(); /* the stack is not as deep */
        return 0;
    }
    found = (PyObject *)PyFrame_GetCode((PyFrameObject *)frame);
    same = found == code;
    Py_DECREF(found);
    if (same) {
        found = PyObject_GetAttr(frame, s_offset);
        same = found ? PyObject_RichCompareBool(found, offset, Py_EQ) : -1;
        Py_XDECREF(found);
    }
    Py_DECREF(frame);
    return same;
}

/* Return a new tuple with the code object and the byte offset of the user's line; NULL on errors.
 *
 * `sites` are those of the work. `*first` is set to the position of the code object in the tuple. */
static PyObject *line(PyObject *log, PyObject *work, PyObject *sites, long long end, Py_ssize_t *first) {
    PyObject *frame, *found;
    Py_ssize_t k;
    for (k = 0; k < PyList_Size(sites); k++) {
        PyObject *site = held(PyList_GetItem(sites, k)); /* (depth of the stack, code object, byte offset) */
        int same = runs(PyTuple_GetItem(site, 0), PyTuple_GetItem(site, 1), PyTuple_GetItem(site, 2));
        if (same > 0 && end % CHECKED) {
            *first = 1;
            return site;
        }
        Py_DECREF(site);
        if (same < 0) return NULL;
        if (same) break;
    }
    *first = 0;
    frame = PyObject_CallFunctionObjArgs(getframe, zero, NULL);
    if (!frame) return NULL;
    found = PyObject_CallMethodObjArgs(log, s_walk, work, frame, NULL);
    Py_DECREF(frame);
    if (found && !(PyTuple_Check(found) && PyTuple_Size(found) == 2)) {
        PyErr_SetString(PyExc_TypeError, "walk: wanted a tuple of a code object and a byte offset");
        Py_CLEAR(found);
    }
    return found;
}

/* Return the identifier of this thread as a Python number; that of the last call is used again. */
static PyObject *thread(void) {
    static PyObject *number;
    static unsigned long last;
    unsigned long ident = PyThread_get_thread_ident();
    if (!number || ident != last) {
        PyObject *made = PyLong_FromUnsignedLong(ident);
        if (!made) return NULL;
        Py_XDECREF(number);
        number = made;
        last = ident;
    }
    return held(number);
}

/* Append the values of an event, in the order that `EventLog.values` describes; return whether that failed. */
static int append_event(PyObject *values, PyObject *work, long long begin, long long end, PyObject *place,
                        Py_ssize_t first) {
    PyObject *row[] = {
        held(work), PyLong_FromLongLong(begin), PyLong_FromLongLong(end), thread(),
        held(place ? PyTuple_GetItem(place, first) : Py_None), held(place ? PyTuple_GetItem(place, first + 1) : zero),
        held(Py_None),
    };
    int k, failed = !row[1] || !row[2] || !row[3];
    for (k = 0; k < (int)(sizeof row / sizeof *row); k++) {
        failed = failed || PyList_Append(values, row[k]);
        Py_XDECREF(row[k]);
    }
    return failed;
}

/* Store an event in `log`, the tuple `state.log`; return whether that failed. */
static int store(PyObject *log, PyObject *self, long long begin, long long end) {
    PyObject *owner = PyTuple_GetItem(log, LOG), *values = PyTuple_GetItem(log, VALUES);
    PyObject *limits = PyTuple_GetItem(log, LIMITS), *work = PyTuple_GetItem(self, WORK);
    PyObject *sites = PyTuple_GetItem(self, SITES), *place = NULL, *done;
    Py_ssize_t first = 0;
    int failed;
    if (PyList_Size(values) >= PyLong_AsSsize_t(PyList_GetItem(limits, FULL))) {
        done = PyErr_Occurred() ? NULL : PyObject_CallMethodObjArgs(owner, s_drop, NULL);
        Py_XDECREF(done);
        return !done;
    }
    if (sites != Py_None) {
        place = line(owner, work, sites, end, &first);
        if (!place) return 1;
    }
    failed = append_event(values, work, begin, end, place, first);
    Py_XDECREF(place);
    if (failed) return 1;
    if (end >= PyLong_AsLongLong(PyList_GetItem(limits, NEXT_SAMPLE))) {
        PyObject *device = PyErr_Occurred() ? NULL : PyObject_GetAttr(work, s_device);
        done = device ? PyObject_CallMethodObjArgs(owner, s_sample, device, NULL) : NULL;
        Py_XDECREF(device);
        Py_XDECREF(done);
        return !done;
    }
    return 0;
}

/* Run a kernel call; store its times in the log that `state` names, or leave all to the Python form if it names none. */
static PyObject *call(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    PyObject *log = PyObject_GetAttr(PyTuple_GetItem(self, STATE), s_log), *args, *found;
    PyObject *type = NULL, *value = NULL, *trace = NULL;
    long long begin, end;
    Py_ssize_t k;
    if (!log) return NULL;
    args = PyTuple_New(count);
    if (!args) goto failed;
    for (k = 0; k < count; k++) PyTuple_SetItem(args, k, held(given[k]));
    if (log == Py_None) {
        found = PyObject_Call(PyTuple_GetItem(self, OTHERWISE), args, NULL);
        goto done;
    }
    begin = now();
    found = PyObject_Call(PyTuple_GetItem(self, RUN), args, NULL);
    end = now();
    if (!found) PyErr_Fetch(&type, &value, &trace);
    if (store(log, self, begin, end)) {
        Py_CLEAR(found);
        if (type && !PyErr_ExceptionMatches(PyExc_Exception)) { /* an interrupt, which must not be lost */
            Py_CLEAR(type);
            Py_CLEAR(value);
            Py_CLEAR(trace);
        }
    }
    if (type) PyErr_Restore(type, value, trace); /* the call's own error comes before that of the log */
done:
    Py_DECREF(args);
    Py_DECREF(log);
    return found;
failed:
    Py_DECREF(log);
    return NULL;
}

static PyMethodDef call_def = {"watched_call", (PyCFunction)(void (*)(void))call, METH_FASTCALL,
                               "Run a kernel call and store when it ran."};

static PyObject *watched_call(PyObject *module, PyObject *args) {
    PyObject *state, *run, *work, *otherwise, *spans, *sites, *self, *made;
    int compiled;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOO:watched_call", &state, &run, &work, &otherwise)) return NULL;
    spans = PyObject_GetAttr(work, s_spans); /* a kernel of compiled code knows its lines */
    compiled = spans ? PyObject_IsTrue(spans) : -1;
    Py_XDECREF(spans);
    if (compiled < 0) return NULL;
    sites = compiled ? held(Py_None) : PyObject_GetAttr(work, s_sites);
    if (!sites) return NULL;
    self = PyTuple_Pack(ITEMS, state, run, work, otherwise, sites);
    Py_DECREF(sites);
    if (!self) return NULL;
    made = PyCFunction_NewEx(&call_def, self, NULL);
    Py_DECREF(self);
    return made;
}

static PyMethodDef methods[] = {
    {"watched_call", watched_call, METH_VARARGS,
     "watched_call(state, run, work, otherwise)\n--\n\n"
     "Return a function that runs `run` and stores the event in `state.log`; without a log it calls `otherwise`."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_recording", "Kernel calls that are stored for a profile.", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__recording(void) {
    static const struct {
        PyObject **name;
        const char *text;
    } names[] = {
        {&s_log, "log"},     {&s_walk, "walk"},   {&s_drop, "drop"},     {&s_sample, "sample"},
        {&s_sites, "sites"}, {&s_spans, "spans"}, {&s_device, "device"}, {&s_offset, "f_lasti"},
    };
    size_t k;
    for (k = 0; k < sizeof names / sizeof *names; k++) {
        *names[k].name = PyUnicode_InternFromString(names[k].text);
        if (!*names[k].name) return NULL;
    }
    zero = PyLong_FromLong(0);
    getframe = PySys_GetObject("_getframe"); /* borrowed */
    if (!zero || !getframe) return NULL;
    Py_INCREF(getframe);
    return PyModule_Create(&definition);
}
