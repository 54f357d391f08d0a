/* Finds secrets in a stream, fast. pairun/secrets/forms.py is its face, and has the same in Python.
 *
 * The search is Wu's and Manber's ("A fast algorithm for multi-pattern searching", 1994): of a
 * window as long as the shortest form, the last two bytes tell how far the window may move on. Where
 * they tell nothing, the forms that have these two bytes there are compared. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PAIRS 65536
#define NONE (-1)
#define MAX_SHIFT 255

typedef struct {
    const unsigned char *bytes;
    Py_ssize_t length;
    int next; /* the next form with the same last two bytes in the window, not longer than this */
} Form;

typedef struct {
    PyObject_HEAD
    PyObject *kept; /* the bytes objects that the forms point into */
    PyObject *mask;
    Form *forms; /* the longest first */
    int count;
    Py_ssize_t shortest, longest;
    int first[PAIRS];           /* the first form of a pair's list */
    unsigned char shift[PAIRS]; /* how far the window may move */
} Scanner;

typedef struct {
    Py_ssize_t start, end;
} Span;

static unsigned pair(const unsigned char *at)
{
    return at[0] | (unsigned)at[1] << 8;
}

/* The length of the longest form that begins at `at`, of those in one list; 0 for none. */
static Py_ssize_t longest_at(const Scanner *self, int form, const unsigned char *at, Py_ssize_t left)
{
    for (; form != NONE; form = self->forms[form].next) {
        const Form *f = &self->forms[form];
        if (f->bytes[0] == at[0] && f->length <= left && memcmp(f->bytes, at, f->length) == 0)
            return f->length;
    }
    return 0;
}

/* How many bytes at the end may be the start of a form. */
static Py_ssize_t held(const Scanner *self, const unsigned char *data, Py_ssize_t size)
{
    Py_ssize_t length = size < self->longest - 1 ? size : self->longest - 1;
    for (; length > 0; length--) {
        const unsigned char *at = data + size - length;
        for (int i = 0; i < self->count && self->forms[i].length > length; i++)
            if (self->forms[i].bytes[0] == at[0] && memcmp(self->forms[i].bytes, at, length) == 0)
                return length;
    }
    return 0;
}

/* Finds what begins before `end`. Returns how many spans there are, or -1 without memory. */
static Py_ssize_t find(const Scanner *self, const unsigned char *data, Py_ssize_t size,
                       Py_ssize_t end, Span **spans)
{
    Py_ssize_t at = 0, found = 0, room = 0, window = self->shortest;
    while (at < end && at + window <= size) {
        unsigned last = pair(data + at + window - 2);
        if (self->shift[last]) {
            at += self->shift[last];
            continue;
        }
        Py_ssize_t length = longest_at(self, self->first[last], data + at, size - at);
        if (!length) {
            at++;
            continue;
        }
        if (found == room) {
            room = room ? room * 2 : 64;
            Span *more = PyMem_RawRealloc(*spans, room * sizeof(Span));
            if (!more)
                return -1;
            *spans = more;
        }
        (*spans)[found++] = (Span){at, at + length};
        at += length;
    }
    return found;
}

static PyObject *masked(const Scanner *self, const unsigned char *data, Py_ssize_t size,
                        const Span *spans, Py_ssize_t found)
{
    Py_ssize_t mask = PyBytes_GET_SIZE(self->mask), total = size, at = 0;
    for (Py_ssize_t i = 0; i < found; i++)
        total += mask - (spans[i].end - spans[i].start);
    PyObject *result = PyBytes_FromStringAndSize(NULL, total);
    if (!result)
        return NULL;
    char *out = PyBytes_AS_STRING(result);
    for (Py_ssize_t i = 0; i < found; i++) {
        memcpy(out, data + at, spans[i].start - at);
        out += spans[i].start - at;
        memcpy(out, PyBytes_AS_STRING(self->mask), mask);
        out += mask;
        at = spans[i].end;
    }
    memcpy(out, data + at, size - at);
    return result;
}

static PyObject *scan(Scanner *self, PyObject *args)
{
    Py_buffer buffer;
    int final;
    if (!PyArg_ParseTuple(args, "y*p:scan", &buffer, &final))
        return NULL;
    const unsigned char *data = buffer.buf;
    Py_ssize_t end, found;
    Span *spans = NULL;
    Py_BEGIN_ALLOW_THREADS
    end = buffer.len - (final ? 0 : held(self, data, buffer.len));
    found = find(self, data, buffer.len, end, &spans);
    if (found > 0 && spans[found - 1].end > end)
        end = spans[found - 1].end;
    Py_END_ALLOW_THREADS
    PyObject *result = NULL;
    if (found < 0) {
        PyErr_NoMemory();
    } else if (found == 0) {
        result = Py_BuildValue("On", Py_None, end);
    } else {
        PyObject *out = masked(self, data, end, spans, found);
        if (out)
            result = Py_BuildValue("Nn", out, end);
    }
    PyMem_RawFree(spans);
    PyBuffer_Release(&buffer);
    return result;
}

/* Fills the tables; the forms are sorted already. */
static void prepare(Scanner *self)
{
    Py_ssize_t window = self->shortest;
    Py_ssize_t far = window - 1 < MAX_SHIFT ? window - 1 : MAX_SHIFT;
    memset(self->shift, (int)far, sizeof self->shift);
    for (int i = 0; i < PAIRS; i++)
        self->first[i] = NONE;
    /* From the shortest to the longest, each to the head of its list. */
    for (int i = self->count - 1; i >= 0; i--) {
        Form *f = &self->forms[i];
        for (Py_ssize_t at = 0; at + 2 <= window; at++) {
            unsigned p = pair(f->bytes + at);
            Py_ssize_t left = window - 2 - at;
            if (left < self->shift[p])
                self->shift[p] = (unsigned char)left;
        }
        unsigned last = pair(f->bytes + window - 2);
        f->next = self->first[last];
        self->first[last] = i;
    }
}

static int fill(Scanner *self, PyObject *forms)
{
    Py_ssize_t count = PyList_GET_SIZE(forms);
    self->forms = PyMem_Calloc(count ? count : 1, sizeof(Form));
    if (!self->forms) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *form = PyList_GET_ITEM(forms, i);
        if (!PyBytes_Check(form) || PyBytes_GET_SIZE(form) < 2 ||
            (i && PyBytes_GET_SIZE(form) > self->forms[i - 1].length)) {
            PyErr_SetString(PyExc_ValueError, "forms are bytes of 2 or more, the longest first");
            return -1;
        }
        self->forms[i] = (Form){(unsigned char *)PyBytes_AS_STRING(form), PyBytes_GET_SIZE(form), NONE};
    }
    if (!count) {
        PyErr_SetString(PyExc_ValueError, "there is nothing to look for");
        return -1;
    }
    self->count = (int)count;
    self->longest = self->forms[0].length;
    self->shortest = self->forms[count - 1].length;
    prepare(self);
    return 0;
}

static PyObject *create(PyTypeObject *type, PyObject *args, PyObject *named)
{
    PyObject *forms, *mask;
    if (named && PyDict_GET_SIZE(named))
        return PyErr_Format(PyExc_TypeError, "Scanner takes no names");
    if (!PyArg_ParseTuple(args, "OS:Scanner", &forms, &mask))
        return NULL;
    Scanner *self = (Scanner *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->mask = Py_NewRef(mask);
    self->kept = PySequence_List(forms); /* a copy: nobody else changes it */
    if (!self->kept || fill(self, self->kept) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void destroy(Scanner *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyMem_Free(self->forms);
    Py_XDECREF(self->kept);
    Py_XDECREF(self->mask);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"scan", (PyCFunction)scan, METH_VARARGS,
     "scan(data, final) -> (masked, size): what may be written of the first `size` bytes, None\n"
     "where that is these bytes themselves; the rest may begin a form, unless `final`"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Scanner(forms, mask): replaces every form, the longest of those at one place"},
    {Py_tp_new, create},
    {Py_tp_dealloc, destroy},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    "_pairun_scan.Scanner", sizeof(Scanner), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, slots,
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_pairun_scan", "Finds secrets in a stream.", -1, NULL,
};

PyMODINIT_FUNC PyInit__pairun_scan(void)
{
    PyObject *self = PyModule_Create(&module);
    PyObject *type = self ? PyType_FromSpec(&spec) : NULL;
    if (!type || PyModule_AddObjectRef(self, "Scanner", type) < 0) {
        Py_XDECREF(type);
        Py_XDECREF(self);
        return NULL;
    }
    Py_DECREF(type);
    return self;
}
