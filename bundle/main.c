/* The bundle's own main(): CPython without anything of the image it stands in.
 *
 * No environment variable, file or folder of the image decides what is imported: the configuration
 * is isolated (docs.python.org/3/c-api/init_config.html), the module search path is empty, and every
 * Python module is frozen into this program (frozen.c, made by freeze.py). */
#include <Python.h>

#include <signal.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <unistd.h>

extern const struct _frozen bundle_modules[];
PyMODINIT_FUNC PyInit__pairun(void);
PyMODINIT_FUNC PyInit__pairun_scan(void);

#define ENTRY "pairun_bundle"

static void check(PyStatus status)
{
    if (PyStatus_Exception(status))
        Py_ExitStatusException(status);
}

/* How this program is started again. The link in /proc leads to this very file even after somebody
 * replaced or removed it; without /proc, the path that the kernel was given must do (getauxval(3)). */
static const char *own_path(void)
{
    static const char link[] = "/proc/self/exe";
    if (access(link, X_OK) == 0)
        return link;
    const char *given = (const char *)getauxval(AT_EXECFN);
    char *absolute = given ? realpath(given, NULL) : NULL;
    return absolute ? absolute : link;
}

static void initialize(int argc, char **argv)
{
    PyPreConfig before;
    PyPreConfig_InitIsolatedConfig(&before);
    before.utf8_mode = 1;
    before.coerce_c_locale = 0;
    before.configure_locale = 0;
    check(Py_PreInitialize(&before));

    PyConfig config;
    PyConfig_InitIsolatedConfig(&config);
    config.site_import = 0;
    config.write_bytecode = 0;
    config.pathconfig_warnings = 0;
    config.install_signal_handlers = 1;
    config.parse_argv = 0;
    config.module_search_paths_set = 1;
    check(PyConfig_SetBytesArgv(&config, argc, argv));
    check(PyConfig_SetBytesString(&config, &config.executable, own_path()));
    /* Given, so that nothing looks for them around the executable. */
    check(PyConfig_SetBytesString(&config, &config.home, "/bundle"));
    check(PyConfig_SetBytesString(&config, &config.prefix, "/bundle"));
    check(PyConfig_SetBytesString(&config, &config.exec_prefix, "/bundle"));
    check(PyConfig_SetBytesString(&config, &config.base_prefix, "/bundle"));
    check(PyConfig_SetBytesString(&config, &config.base_exec_prefix, "/bundle"));
    check(Py_InitializeFromConfig(&config));
    PyConfig_Clear(&config);
}

/* The result of pairun_bundle.main(), or the exit code of the exception that ended it. */
static int run(void)
{
    long code = 1;
    PyObject *result = NULL;
    PyObject *entry = PyImport_ImportModule(ENTRY);
    if (entry)
        result = PyObject_CallMethod(entry, "main", NULL);
    if (result)
        code = PyLong_AsLong(result);
    if (PyErr_Occurred()) {
        PyErr_Print(); /* ends this process where the exception is SystemExit */
        code = 1;
    }
    Py_XDECREF(result);
    Py_XDECREF(entry);
    return (int)code;
}

/* A stop that comes while Python starts must wait for the one who takes signals: the kernel drops
 * what PID 1 has no handler for (pid_namespaces(7)). Interrupting a command of people stays possible. */
static void hold_stops(void)
{
    sigset_t stops;
    sigemptyset(&stops);
    sigaddset(&stops, SIGTERM);
    sigaddset(&stops, SIGINT);
    sigaddset(&stops, SIGHUP);
    sigprocmask(SIG_BLOCK, &stops, NULL);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        hold_stops();
    /* What process lists show; the file's name would be "exe" where it started itself again. */
    prctl(PR_SET_NAME, "pairun", 0UL, 0UL, 0UL);
    PyImport_FrozenModules = bundle_modules;
    if (PyImport_AppendInittab("_pairun", PyInit__pairun) < 0
        || PyImport_AppendInittab("_pairun_scan", PyInit__pairun_scan) < 0)
        return 1;
    initialize(argc, argv);
    int code = run();
    /* What could not be written is an error, as with any Python. */
    return Py_FinalizeEx() < 0 ? 120 : code;
}
