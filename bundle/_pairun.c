/* The system calls that Python's os module lacks. pairun/base/system.py is their face. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <sys/mount.h>
#include <sys/prctl.h>

/* "O&" for a path or text that may be None: a bytes object in *result, or NULL for None. */
static int optional_path(PyObject *value, void *result)
{
    if (value == Py_None) {
        *(PyObject **)result = NULL;
        return 1;
    }
    return PyUnicode_FSConverter(value, result);
}

static const char *text_of(PyObject *bytes)
{
    return bytes ? PyBytes_AS_STRING(bytes) : NULL;
}

static PyObject *call_mount(PyObject *self, PyObject *args)
{
    PyObject *source = NULL, *target = NULL, *type = NULL, *data = NULL;
    unsigned long flags;
    int failed;
    if (!PyArg_ParseTuple(args, "O&O&O&kO&:mount", optional_path, &source, PyUnicode_FSConverter,
                          &target, optional_path, &type, &flags, optional_path, &data))
        goto error;
    Py_BEGIN_ALLOW_THREADS
    failed = mount(text_of(source), text_of(target), text_of(type), flags, text_of(data));
    Py_END_ALLOW_THREADS
    if (failed) {
        PyErr_SetFromErrnoWithFilename(PyExc_OSError, text_of(target));
        goto error;
    }
    Py_XDECREF(source);
    Py_DECREF(target);
    Py_XDECREF(type);
    Py_XDECREF(data);
    Py_RETURN_NONE;
error:
    Py_XDECREF(source);
    Py_XDECREF(target);
    Py_XDECREF(type);
    Py_XDECREF(data);
    return NULL;
}

static PyObject *call_umount(PyObject *self, PyObject *args)
{
    PyObject *target = NULL;
    int flags, failed;
    if (!PyArg_ParseTuple(args, "O&i:umount", PyUnicode_FSConverter, &target, &flags))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    failed = umount2(text_of(target), flags);
    Py_END_ALLOW_THREADS
    if (failed)
        PyErr_SetFromErrnoWithFilename(PyExc_OSError, text_of(target));
    Py_DECREF(target);
    if (failed)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *call_prctl(PyObject *self, PyObject *args)
{
    int option;
    unsigned long value;
    if (!PyArg_ParseTuple(args, "ik:prctl", &option, &value))
        return NULL;
    int result = prctl(option, value, 0UL, 0UL, 0UL);
    if (result < 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    return PyLong_FromLong(result);
}

static PyMethodDef methods[] = {
    {"mount", call_mount, METH_VARARGS, "mount(source, target, type, flags, data): mount(2)"},
    {"umount", call_umount, METH_VARARGS, "umount(target, flags): umount2(2)"},
    {"prctl", call_prctl, METH_VARARGS, "prctl(option, value): prctl(2) with one argument"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_pairun", "System calls that os lacks.", -1, methods,
};

PyMODINIT_FUNC PyInit__pairun(void)
{
    return PyModule_Create(&module);
}
