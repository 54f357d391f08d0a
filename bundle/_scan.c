/* Finds secrets in a stream, fast. pairun/secrets/scanner.py does the same in Python.
 *
 * The search is Wu's and Manber's ("A fast algorithm for multi-pattern searching", 1994): the last
 * four bytes of a window as long as the shortest form say how far the window may move. Where they
 * do not move it, the forms with these bytes at this place are compared. Two bytes are too few for
 * a thousand secrets: in hexadecimal digits, no two move the window. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PAIRS 65536 /* of two bytes; as many slots are there for four */
#define NONE (-1)
#define MAX_SHIFT 255

/* These five are those of pairun/base/escapes.py and pairun/secrets/scanner.py. */
#define ESCAPE 0x1b
#define MAX_PARAMETERS 64
#define MAX_INTERMEDIATES 16
#define MAX_TITLE 500
#define WRAPPED 16
#define MAX_INDENT 64

typedef struct {
    const unsigned char *bytes;
    Py_ssize_t length;
    int next; /* the next form with the same slot at the end of the window, not longer than this */
    int like; /* the next form with the same first two bytes, not longer than this */
} Form;

typedef struct {
    PyObject_HEAD
    PyObject *kept; /* the bytes objects that the forms point into */
    Form *forms; /* the longest first */
    int count;
    Py_ssize_t shortest, longest;
    Py_ssize_t block;           /* how many bytes choose a slot: 4, or 2 of shorter forms */
    int first[PAIRS];           /* the first form of a slot's list */
    int begins[PAIRS];          /* the first form of the list of two first bytes */
    unsigned char shift[PAIRS]; /* how far the window may move */
    unsigned char inner[PAIRS]; /* whether a form has these two bytes side by side */
    unsigned char open[256];    /* whether a form goes on after this byte */
    unsigned char starts[256];  /* whether a form begins with this byte */
} Scanner;

typedef struct {
    Py_ssize_t start, end;
} Span;

static unsigned pair(const unsigned char *at)
{
    return at[0] | (unsigned)at[1] << 8;
}

/* The slot of the bytes at the end of a window; different bytes may share one. */
static unsigned slot(const Scanner *self, const unsigned char *at)
{
    uint32_t bytes;
    if (self->block == 2)
        return pair(at);
    memcpy(&bytes, at, sizeof bytes);
    return bytes * 2654435761u >> 16;
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
    if (length > 1 && !self->inner[pair(data + size - 2)])
        length = 1;
    for (; length > 1; length--) {
        const unsigned char *at = data + size - length;
        int i = self->begins[pair(at)];
        for (; i != NONE && self->forms[i].length > length; i = self->forms[i].like)
            if (memcmp(self->forms[i].bytes, at, length) == 0)
                return length;
    }
    return length == 1 && self->starts[data[size - 1]];
}

/* Appends a span. Returns how many there are, or -1 without memory. */
static Py_ssize_t append(Span **spans, Py_ssize_t count, Py_ssize_t *room, Span span)
{
    if (count == *room) {
        *room = *room ? *room * 2 : 64;
        Span *more = PyMem_RawRealloc(*spans, *room * sizeof(Span));
        if (!more)
            return -1;
        *spans = more;
    }
    (*spans)[count] = span;
    return count + 1;
}

/* Finds what begins before `end`. Returns how many spans there are, or -1 without memory. */
static Py_ssize_t find(const Scanner *self, const unsigned char *data, Py_ssize_t size,
                       Py_ssize_t end, Span **spans)
{
    Py_ssize_t at = 0, found = 0, room = 0, window = self->shortest;
    while (at < end && at + window <= size) {
        unsigned last = slot(self, data + at + window - self->block);
        if (self->shift[last]) {
            at += self->shift[last];
            continue;
        }
        Py_ssize_t length = longest_at(self, self->first[last], data + at, size - at);
        if (!length) {
            at++;
            continue;
        }
        found = append(spans, found, &room, (Span){at, at + length});
        if (found < 0)
            return -1;
        at += length;
    }
    return found;
}

/* A list of the start and the end of every span. */
static PyObject *pairs_of(const Span *spans, Py_ssize_t count)
{
    PyObject *list = PyList_New(count);
    for (Py_ssize_t i = 0; list && i < count; i++) {
        PyObject *each = Py_BuildValue("nn", spans[i].start, spans[i].end);
        if (!each)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, each);
    }
    return list;
}

static PyObject *spans(Scanner *self, PyObject *args)
{
    Py_buffer buffer;
    int final;
    if (!PyArg_ParseTuple(args, "y*p:spans", &buffer, &final))
        return NULL;
    Py_ssize_t found, end;
    Span *spans = NULL;
    Py_BEGIN_ALLOW_THREADS
    end = buffer.len - (final ? 0 : held(self, buffer.buf, buffer.len));
    found = find(self, buffer.buf, buffer.len, end, &spans);
    if (found > 0 && spans[found - 1].end > end)
        end = spans[found - 1].end;
    Py_END_ALLOW_THREADS
    PyObject *list = found < 0 ? PyErr_NoMemory() : pairs_of(spans, found);
    PyMem_RawFree(spans);
    PyBuffer_Release(&buffer);
    return list ? Py_BuildValue("Nn", list, end) : NULL;
}

/* The length of the escape code at `at`, also of one that the end of the data cuts; else 0. */
static Py_ssize_t escape_at(const unsigned char *at, Py_ssize_t left)
{
    Py_ssize_t i = 2, limit;
    if (left == 1)
        return 1;
    if (at[1] == '[') {
        for (limit = i + MAX_PARAMETERS; i < left && i < limit && at[i] >= '0' && at[i] <= '?';)
            i++;
        for (limit = i + MAX_INTERMEDIATES; i < left && i < limit && at[i] >= ' ' && at[i] <= '/';)
            i++;
        if (i == left)
            return i;
        return at[i] >= '@' && at[i] <= '~' ? i + 1 : 0;
    }
    if (at[1] >= ' ' && at[1] <= '/') {
        for (limit = 1 + MAX_INTERMEDIATES; i < left && i < limit && at[i] >= ' ' && at[i] <= '/';)
            i++;
        if (i == left)
            return i;
        return at[i] >= '0' && at[i] <= '~' ? i + 1 : 0;
    }
    if (at[1] == ']') {
        for (limit = i + MAX_TITLE; i < left && i < limit && at[i] != 7 && at[i] != ESCAPE;)
            i++;
        if (i == left || (at[i] == ESCAPE && i + 1 == left))
            return left;
        if (at[i] == 7)
            return i + 1;
        if (at[i] == ESCAPE && at[i + 1] == '\\')
            return i + 2;
    }
    return at[1] >= '0' && at[1] <= '~' ? 2 : 0;
}

/* The characters of base64, of both alphabets. */
static const unsigned char is_base64[256] = {
    ['+'] = 1, ['-'] = 1, ['/'] = 1, ['_'] = 1,
    ['0'] = 1, ['1'] = 1, ['2'] = 1, ['3'] = 1, ['4'] = 1, ['5'] = 1, ['6'] = 1, ['7'] = 1,
    ['8'] = 1, ['9'] = 1,
    ['A'] = 1, ['B'] = 1, ['C'] = 1, ['D'] = 1, ['E'] = 1, ['F'] = 1, ['G'] = 1, ['H'] = 1,
    ['I'] = 1, ['J'] = 1, ['K'] = 1, ['L'] = 1, ['M'] = 1, ['N'] = 1, ['O'] = 1, ['P'] = 1,
    ['Q'] = 1, ['R'] = 1, ['S'] = 1, ['T'] = 1, ['U'] = 1, ['V'] = 1, ['W'] = 1, ['X'] = 1,
    ['Y'] = 1, ['Z'] = 1,
    ['a'] = 1, ['b'] = 1, ['c'] = 1, ['d'] = 1, ['e'] = 1, ['f'] = 1, ['g'] = 1, ['h'] = 1,
    ['i'] = 1, ['j'] = 1, ['k'] = 1, ['l'] = 1, ['m'] = 1, ['n'] = 1, ['o'] = 1, ['p'] = 1,
    ['q'] = 1, ['r'] = 1, ['s'] = 1, ['t'] = 1, ['u'] = 1, ['v'] = 1, ['w'] = 1, ['x'] = 1,
    ['y'] = 1, ['z'] = 1,
};

/* Whether the line up to `end` ends with as many characters of base64 as a wrapped line has. */
static int is_full(const unsigned char *data, Py_ssize_t end, Py_ssize_t before)
{
    Py_ssize_t run = 0;
    while (run < WRAPPED && run < end && is_base64[data[end - 1 - run]])
        run++;
    return (run == end ? run + before : run) >= WRAPPED;
}

static Py_ssize_t next(const unsigned char *data, Py_ssize_t size, Py_ssize_t from, int byte)
{
    const unsigned char *at = from < size ? memchr(data + from, byte, size - from) : NULL;
    return at ? at - data : size;
}

/* Whether no form has two bytes side by side; what follows the end of the data may be any byte. */
static int is_apart(const Scanner *self, const unsigned char *data, Py_ssize_t size,
                    Py_ssize_t start, Py_ssize_t end)
{
    if (start == 0)
        return 1;
    if (end == size)
        return !self->open[data[start - 1]];
    return !self->inner[data[start - 1] | (unsigned)data[end] << 8];
}

/* Finds what may be a seam. Returns how many there are, or -1 without memory. */
static Py_ssize_t find_seams(const Scanner *self, const unsigned char *data, Py_ssize_t size,
                             Py_ssize_t before, Span **seams)
{
    Py_ssize_t at = 0, count = 0, room = 0;
    Py_ssize_t escape = next(data, size, 0, ESCAPE), line = next(data, size, 0, '\n');
    while (count >= 0 && (escape < size || line < size)) {
        if (escape < line) {
            Py_ssize_t length = escape_at(data + escape, size - escape);
            if (length)
                count = append(seams, count, &room, (Span){escape, escape + length});
            at = escape + (length ? length : 1);
        } else {
            Py_ssize_t start = line > at && data[line - 1] == '\r' ? line - 1 : line;
            Py_ssize_t end = line + 1, limit = end + MAX_INDENT;
            while (end < size && end < limit && (data[end] == ' ' || data[end] == '\t'))
                end++;
            int coloured = end < size && data[end] == ESCAPE;
            if ((coloured || !is_apart(self, data, size, start, end)) &&
                is_full(data, start, before))
                count = append(seams, count, &room, (Span){start, end});
            at = end;
        }
        if (escape < at)
            escape = next(data, size, at, ESCAPE);
        if (line < at)
            line = next(data, size, at, '\n');
    }
    if (count >= 0 && at < size && data[size - 1] == '\r' && is_full(data, size - 1, before))
        count = append(seams, count, &room, (Span){size - 1, size});
    return count;
}

/* Keeps the seams that a form may cross. Returns how many these are, or -1 without memory. */
static Py_ssize_t keep_crossed(const Scanner *self, const unsigned char *data, Py_ssize_t size,
                               Span **seams, Py_ssize_t count)
{
    Py_ssize_t kept = 0, room = 0;
    Span *all = *seams, *crossed = NULL;
    for (Py_ssize_t first = 0, last; kept >= 0 && first < count; first = last + 1) {
        for (last = first; last + 1 < count && all[last + 1].start == all[last].end;)
            last++;
        if (is_apart(self, data, size, all[first].start, all[last].end))
            continue;
        for (Py_ssize_t i = first; kept >= 0 && i <= last; i++)
            kept = append(&crossed, kept, &room, all[i]);
    }
    PyMem_RawFree(all);
    *seams = crossed;
    return kept;
}

/* The data without its seams, and the place of each in it and its length. */
static PyObject *without(const unsigned char *data, Py_ssize_t size, Span *seams, Py_ssize_t count)
{
    Py_ssize_t removed = 0, at = 0;
    for (Py_ssize_t i = 0; i < count; i++)
        removed += seams[i].end - seams[i].start;
    PyObject *rest = PyBytes_FromStringAndSize(NULL, size - removed);
    if (!rest)
        return NULL;
    char *out = PyBytes_AS_STRING(rest), *start = out;
    for (Py_ssize_t i = 0; i < count; i++) {
        memcpy(out, data + at, seams[i].start - at);
        out += seams[i].start - at;
        at = seams[i].end;
        seams[i] = (Span){out - start, seams[i].end - seams[i].start};
    }
    memcpy(out, data + at, size - at);
    return Py_BuildValue("Ny#", rest, (char *)seams, count * (Py_ssize_t)sizeof(Span));
}

static PyObject *joined(Scanner *self, PyObject *args)
{
    Py_buffer buffer;
    Py_ssize_t before, count;
    if (!PyArg_ParseTuple(args, "y*n:joined", &buffer, &before))
        return NULL;
    Span *seams = NULL;
    Py_BEGIN_ALLOW_THREADS
    count = find_seams(self, buffer.buf, buffer.len, before, &seams);
    if (count > 0)
        count = keep_crossed(self, buffer.buf, buffer.len, &seams, count);
    Py_END_ALLOW_THREADS
    PyObject *result = NULL;
    if (count < 0) {
        PyErr_NoMemory();
    } else if (count == 0) {
        result = Py_NewRef(Py_None);
    } else {
        result = without(buffer.buf, buffer.len, seams, count);
    }
    PyMem_RawFree(seams);
    PyBuffer_Release(&buffer);
    return result;
}

/* Fills the tables; the forms are sorted already. */
static void prepare(Scanner *self)
{
    Py_ssize_t window = self->shortest;
    self->block = window < 4 ? 2 : 4;
    Py_ssize_t far = window - self->block + 1 < MAX_SHIFT ? window - self->block + 1 : MAX_SHIFT;
    memset(self->shift, (int)far, sizeof self->shift);
    memset(self->first, NONE, sizeof self->first);
    memset(self->begins, NONE, sizeof self->begins);
    memset(self->starts, 0, sizeof self->starts);
    memset(self->inner, 0, sizeof self->inner);
    memset(self->open, 0, sizeof self->open);
    /* From the shortest to the longest, each to the head of its list. */
    for (int i = self->count - 1; i >= 0; i--) {
        Form *f = &self->forms[i];
        for (Py_ssize_t at = 0; at + self->block <= window; at++) {
            unsigned p = slot(self, f->bytes + at);
            Py_ssize_t left = window - self->block - at;
            if (left < self->shift[p])
                self->shift[p] = (unsigned char)left;
        }
        for (Py_ssize_t at = 0; at + 1 < f->length; at++) {
            self->inner[pair(f->bytes + at)] = 1;
            self->open[f->bytes[at]] = 1;
        }
        unsigned last = slot(self, f->bytes + window - self->block);
        f->next = self->first[last];
        self->first[last] = i;
        f->like = self->begins[pair(f->bytes)];
        self->begins[pair(f->bytes)] = i;
        self->starts[f->bytes[0]] = 1;
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
        self->forms[i] = (Form){(unsigned char *)PyBytes_AS_STRING(form),
                                PyBytes_GET_SIZE(form), NONE, NONE};
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
    PyObject *forms;
    if (named && PyDict_GET_SIZE(named))
        return PyErr_Format(PyExc_TypeError, "Scanner takes no names");
    if (!PyArg_ParseTuple(args, "O:Scanner", &forms))
        return NULL;
    Scanner *self = (Scanner *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
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
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"spans", (PyCFunction)spans, METH_VARARGS,
     "spans(data, final) -> (spans, size): the start and end of every form that begins in the first\n"
     "`size` bytes, of those at one place the longest; the rest may begin a form, unless `final`"},
    {"joined", (PyCFunction)joined, METH_VARARGS,
     "joined(data, before) -> None without seams, else (rest, seams): the data without escape codes\n"
     "and line wraps, and two Py_ssize_t for each, its place in the rest and its length; `before` is\n"
     "how many characters of base64 the line had before the data"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Scanner(forms): finds every form"},
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
