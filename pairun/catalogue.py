"""What every error id means, and what to do about it. PID 1 never loads this text.

An id is an interface: it keeps its meaning for ever, and is not used again.
"""

from __future__ import annotations

from typing import NamedTuple


class ErrorKind(NamedTuple):
    """A title, and the advice that ``pairun doc ID`` prints."""

    title: str
    advice: str


_ROWS: tuple[tuple[str, str, str], ...] = (
    # 1xx: text
    (
        "PR101",
        "not YAML",
        "Correct the text at the caret; indentation and quotes are the usual causes.",
    ),
    ("PR102", "not UTF-8", "Save the file as UTF-8."),
    ("PR103", "too large", "Make the file smaller than 4 MiB."),
    ("PR104", "nested too deeply", "Use at most 64 levels."),
    ("PR105", "aliases expand to too much", "Write the repeated part out, or use fewer aliases."),
    ("PR106", "a key is given twice", "Keep one of the two; the second would silently win."),
    (
        "PR107",
        "not a plain value",
        "Only text, numbers, true, false, null, lists and mappings are read.",
    ),
    ("PR108", "cannot be read", "Check the path and its permissions."),
    ("PR109", "empty or not a mapping", "The document must be one mapping of keys to values."),
    # 2xx: playbooks
    ("PR201", "unknown keyword", "See `pairun doc keywords` for all of them."),
    ("PR203", "not exactly one module", "A task uses one module; write two tasks."),
    ("PR204", "a value of the wrong kind", "See `pairun doc KEYWORD` or `pairun doc MODULE`."),
    ("PR205", "missing", "Add the key that the message names."),
    (
        "PR206",
        "an id used twice",
        "Ids are unique over both phases; give one of the tasks another id.",
    ),
    (
        "PR207",
        "a combination without effect",
        "Remove one of the two, or add the key that the message asks for.",
    ),
    (
        "PR208",
        "a task after user_command",
        "user_command is the last task of its phase; use on_exit.",
    ),
    ("PR209", "a keyword of another tool", "Use the pairun keyword that the message names."),
    ("PR210", "not a duration", "Durations carry a unit: 500ms, 10s, 5m, 1h30m."),
    (
        "PR211",
        "a file mode that is not quoted",
        "Write the mode as text, '0644': YAML reads 0644 as a number.",
    ),
    ("PR212", "not allowed in this phase", "See the module's phases in `pairun doc MODULE`."),
    ("PR213", "a name that is taken", "A module or plugin cannot have the name of a keyword."),
    ("PR214", "a deprecated argument", "Use the task keyword that the message names."),
    (
        "PR215",
        "bounds that no value fits",
        "The lowest value is above the highest; swap the two, or correct one.",
    ),
    # 3xx: templates
    ("PR301", "not defined", "See what is defined in docs/playbooks.md, or add `| default(...)`."),
    ("PR302", "not a valid expression", "Correct the expression at the caret."),
    ("PR303", "statements are not allowed here", "A job's layer may use {{ … }} only."),
    (
        "PR304",
        "an expression that costs too much",
        "Expressions are for small decisions; compute in a task.",
    ),
    ("PR305", "an expression failed", "Check the types of its values."),
    (
        "PR306",
        "a tag of the job protocol in an expression layer",
        "Under extras.pairun write {{ secrets.x }} or {{ parameters.x }}.",
    ),
    # 4xx: layers and policy
    ("PR401", "no such task", "Patches name a task by the id that `pairun --dry-run` prints."),
    (
        "PR402",
        "not permitted by the cluster's policy",
        "Ask for what the policy allows, or ask the operator.",
    ),
    ("PR403", "the task is locked", "Layers above the one that locks a task cannot change it."),
    ("PR404", "not a patch", "An entry is one of patch, disable, before, after, append."),
    ("PR406", "policy does not make sense", "See docs/policy.md."),
    # 5xx: job protocol
    ("PR501", "not a job of protocol v2", "See docs/jobs.md."),
    ("PR502", "unknown key", "Keys of the job protocol are fixed; remove it or correct it."),
    ("PR503", "a value of the wrong kind", "Write a value of the kind that the message names."),
    ("PR504", "missing", "Add the key that the message names."),
    ("PR505", "no such prerequisite", "Name one that the job's prerequisites list has."),
    ("PR506", "prerequisites require each other in a circle", "Break the circle."),
    (
        "PR507",
        "two roles become one name",
        "Rename one: a role's Pod name keeps letters and digits only.",
    ),
    ("PR508", "a name used twice", "Names of prerequisites are unique per type."),
    ("PR509", "no such role", "Name one of the job's roles."),
    (
        "PR510",
        "a template tag that cannot be resolved",
        "Define what the tag names, or correct it.",
    ),
    ("PR511", "unknown plugin", "See `pairun doc` for the plugins of the content roots in use."),
    ("PR512", "plugin parameters that do not fit", "See `pairun doc PLUGIN`."),
    ("PR513", "callbacks beside preCommands or postCommands", "Use the one or the other."),
    ("PR515", "no such deployment", "Name one that the job's deployments list has."),
    (
        "PR516",
        "text that the shell cannot read",
        "Correct the script at the caret; `bash -n` reports the same error.",
    ),
    # 6xx: content roots and modules
    (
        "PR601",
        "not a content root",
        "A content root is a folder with modules, playbooks, plugin_specs, plugins or diagnosis.",
    ),
    ("PR602", "a module that cannot be loaded", "Correct the module's file."),
    (
        "PR603",
        "a module with an unusable class",
        "See docs/modules.md for what a module consists of.",
    ),
    ("PR604", "unknown argument", "See `pairun doc MODULE`."),
    ("PR605", "an argument of the wrong kind", "See `pairun doc MODULE`."),
    ("PR606", "an argument is missing", "See `pairun doc MODULE`."),
    # 7xx: while running
    (
        "PR701",
        "the work directory cannot be used",
        "Give another one with --workdir, or correct its permissions.",
    ),
    ("PR702", "the plan cannot be used", "Run the init phase of the same pairun version again."),
    ("PR703", "a module is not the one that was planned", "Run the init phase again."),
    (
        "PR704",
        "the phase's inputs are missing",
        "pairun init runs in a Pod; on a laptop use pairun run.",
    ),
    (
        "PR705",
        "more instances than this machine has resources for",
        "Run fewer with --instances, or run them anyway with --overcommit.",
    ),
    (
        "PR706",
        "the container's limits are too low for pairun",
        "Raise its limits of processes, file descriptors and memory.",
    ),
    ("PR711", "unknown key of a plain Pod's settings", "See docs/plain-pod.md for the keys."),
    (
        "PR712",
        "a value of the wrong kind in a plain Pod's settings",
        "Write a value of the kind that the message names.",
    ),
    ("PR713", "missing in a plain Pod's settings", "Add the key that the message names."),
    (
        "PR714",
        "text that lost its line ends",
        "Begin a block in a manifest with `|`: `>` and `>-` join its lines.",
    ),
    (
        "PR715",
        "an init plugin without its task",
        "Give the init playbook the task, or name a program of your own.",
    ),
    ("PR716", "a mounted file that cannot be used", "Correct the file, or unmount it."),
    (
        "PR717",
        "a line that is not NAME=value",
        "The init task that writes runtime.d/env writes one variable per line.",
    ),
    (
        "PR718",
        "a file on the shared volume is not trusted",
        "Mount settings, or keep them in the image and set PAI_CONFIG_DIR.",
    ),
    ("PR719", "a setting without effect", "Remove it, or the setting that overrides it."),
    (
        "PR720",
        "nearly a program of OpenPAI",
        "Correct its spelling; a program of your own needs another name, or its whole path.",
    ),
    (
        "PR730",
        "neither of the two job formats",
        "Write a job of protocol v2; `pairun convert` makes one of a job of OpenPAI on YARN.",
    ),
    ("PR731", "a name that protocol v2 refuses", "Rename it, and what uses the name."),
    (
        "PR732",
        "something of YARN that protocol v2 has no place for",
        "See docs/jobs.md for the replacement.",
    ),
    (
        "PR733",
        "a folder of HDFS that is not mounted",
        "Fetch it in the command, or use a storage of the cluster.",
    ),
    (
        "PR734",
        "a value that cannot be exported as it is",
        "Remove the quote, backslash or control character.",
    ),
    ("PR735", "not a Framework", "Give one Framework object, as kubectl prints it."),
    ("PR736", "a Framework that cannot be read", "Save the whole object to the file again."),
    (
        "PR737",
        "the values of secrets are unknown",
        "A Framework holds a job without them; the job's own file has them.",
    ),
    (
        "PR738",
        "a job of OpenPAI on YARN",
        "It is read as protocol v2; `pairun convert` prints what it becomes.",
    ),
    ("PR741", "unknown key of an exit spec", "See docs/exit-codes.md for the keys."),
    (
        "PR742",
        "a value of the wrong kind in an exit spec",
        "Write a value of the kind that the message names.",
    ),
    ("PR743", "missing in an exit spec", "Add the key that the message names."),
    (
        "PR744",
        "an empty pattern in an exit spec",
        "Say when the code applies; until then pairun ignores the entry.",
    ),
    (
        "PR745",
        "a regular expression in an exit spec that cannot be used",
        "Correct it; the syntax is Go's.",
    ),
    (
        "PR770",
        "no API server that this Pod can ask",
        "See docs/gang.md: the Pod needs the API server's address, a token and the CA certificate.",
    ),
    ("PR771", "no such Framework", "It was deleted; submit the job again."),
    (
        "PR772",
        "the API server refuses this Pod",
        "Grant the right that the message names, or give the Pod a valid token.",
    ),
    (
        "PR773",
        "the API server did not answer in time",
        "Check that it is up and reachable from the node.",
    ),
    ("PR774", "a setting of the barrier that cannot be used", "Correct the variable, or unset it."),
    (
        "PR775",
        "the members of a job did not meet in time",
        "Check what the Pods in the message wait for; see docs/gang.md.",
    ),
    (
        "PR776",
        "the job's leader refuses this member",
        "The member belongs to another attempt, or its request is invalid; see docs/gang.md.",
    ),
    (
        "PR777",
        "the port of the rendezvous is taken",
        "Another process on the node uses the port; docs/gang.md says how pairun chooses it.",
    ),
    (
        "PR778",
        "the job has no key",
        "Create the job's objects with `pairun manifest`, which adds a Secret with a key.",
    ),
    (
        "PR779",
        "instances that do not know each other",
        "See docs/gang.md: it takes several instances, and the job's key.",
    ),
    (
        "PR780",
        "an engine that cannot run the job as it is",
        "Choose another engine, or change the job; see docs/kubernetes.md.",
    ),
    (
        "PR781",
        "a newer Kubernetes is needed",
        "Choose another engine, or remove from the job what needs it.",
    ),
    ("PR782", "missing for a manifest", "Give the option that the message names."),
    (
        "PR783",
        "a name or a size that Kubernetes refuses",
        "Choose a shorter or plainer name, or make the job smaller.",
    ),
    (
        "PR784",
        "something comes out differently in the cluster",
        "Choose another engine, or change the job; see docs/kubernetes.md.",
    ),
    (
        "PR785",
        "the Kubernetes client is missing",
        "Reinstall pairun: the client is one of its dependencies.",
    ),
    (
        "PR786",
        "a kubeconfig that cannot be used",
        "Give the right file and context; `kubectl config view` shows what is in them.",
    ),
    (
        "PR787",
        "an API server that cannot be reached",
        "Check the server's address in the kubeconfig, and that the cluster is up.",
    ),
    (
        "PR788",
        "the API server refuses",
        "Log in again, ask for the right that the message names, or correct the object.",
    ),
    (
        "PR789",
        "no such job in the cluster, or one already",
        "Check the name, the namespace and the context.",
    ),
    (
        "PR796",
        "a Pod Security profile forbids what the job asks for",
        "Remove the settings that the message names, or choose another profile; see docs/pod.md.",
    ),
    ("PR790", "unknown key in diagnosis rules", "See docs/diagnosis.md for the keys."),
    (
        "PR791",
        "a value of the wrong kind in diagnosis rules",
        "Write a value of the kind that the message names.",
    ),
    ("PR792", "missing in diagnosis rules", "Add the key that the message names."),
    (
        "PR793",
        "diagnosis rules refer to an unknown rule",
        "Correct the name, or remove it; `pairun doc failures` lists the classes.",
    ),
    (
        "PR794",
        "a rule of the diagnosis that cannot be used",
        "Correct the pattern or the sample that the message names; until then pairun ignores the rule.",
    ),
    (
        "PR795",
        "no class of failure has an exit code",
        "Define exit codes in a content root: `exit_codes` in a file of its folder diagnosis.",
    ),
    (
        "PR798",
        "an exit code of a class that has a meaning already",
        "Give the class a code that docs/exit-codes.md names as free.",
    ),
    (
        "PR799",
        "another rule decides a sample of a cluster's own rule",
        "Give the rule the weight that the message names, or disable the other one.",
    ),
    # 8xx: command line
    ("PR801", "wrong usage", "See `pairun --help`."),
    (
        "PR820",
        "a manifest without a Pod template for pairun",
        "See docs/inject.md for the kinds; --kind-template names the template of another.",
    ),
    (
        "PR821",
        "a command that pairun cannot know",
        "Write it into the manifest, give --entrypoint, or let pairun ask the registry.",
    ),
    (
        "PR822",
        "text that pairun cannot edit",
        "An anchor shares it with other parts: write it out where it is used.",
    ),
    ("PR823", "a Pod without the main container that you named", "Correct --container."),
    (
        "PR824",
        "a barrier that could never pass, or whose gang is unknown",
        "Remove --barrier, or give what the message asks for; see docs/inject.md.",
    ),
    (
        "PR825",
        "a name or a path that pairun needs itself",
        "Rename it in the manifest, or mount it elsewhere.",
    ),
    ("PR826", "a workload that behaves differently with pairun", "See docs/inject.md."),
    (
        "PR827",
        "a workload that pairun cannot be injected into",
        "Its controller replaces the command or drops init containers; see docs/inject.md.",
    ),
    (
        "PR828",
        "rights that an injected Pod lacks",
        "Name a service account with --use ServiceAccount/NAME, or let pairun create one.",
    ),
    ("PR810", "a journal that cannot be read", "See docs/report.md for what can be given."),
    ("PR811", "a page that cannot be written", "Name a file in a folder that exists and has room."),
    (
        "PR812",
        "a new file that cannot be written",
        "Choose another name or folder; pairun replaces no file.",
    ),
    (
        "PR814",
        "progress that cannot be written",
        "Call `pairun progress` in a command that pairun runs as a job.",
    ),
    # 9xx: warnings
    (
        "PR901",
        "a role's raw name differs from its Pod name",
        "Variables are exported under both names.",
    ),
    (
        "PR902",
        "taskRetryCount has no effect",
        "It only counts when extras.gangAllocation is false.",
    ),
    (
        "PR903",
        "a variable may be unset",
        "The user command runs with nounset: use ${NAME:-}. pairun does not know what an image sets.",
    ),
    (
        "PR904",
        "a tag stays as it is",
        "Nothing defines what the tag names; the text reaches the shell.",
    ),
    ("PR905", "a secret too short to redact", "Values under 4 bytes are not masked in logs."),
    ("PR907", "an event that does not exist", "The callback never runs."),
    ("PR908", "not part of this version yet", "pairun ignores it."),
    (
        "PR909",
        "secrets in JSON are stored unmasked",
        "Submit the job as YAML: OpenPAI masks only that form.",
    ),
    ("PR910", "a task without a time limit", "Give it a timeout or a deadline."),
    (
        "PR911",
        "a plugin parameter that the plugin does not have",
        "See `pairun doc PLUGIN` for its parameters.",
    ),
    (
        "PR912",
        "a file that pairun does not read",
        "Playbooks are init.yaml, runtime.yaml, policy.yaml; see docs/playbooks.md.",
    ),
    (
        "PR916",
        "an unknown key in the login of an image",
        "A login has username, password and registryuri; another key has no effect.",
    ),
    (
        "PR920",
        "exit handlers that the grace time cannot hold",
        "Shorten their timeouts, or raise the grace time; see docs/pid1.md.",
    ),
    (
        "PR921",
        "torchrun may outlive the grace time",
        "It kills its workers 30 s after a stop. Save sooner, or ask the operator for more grace time.",
    ),
    (
        "PR922",
        "a signal that would come after the end",
        "Shorten the wait between the steps, or raise the grace time.",
    ),
    (
        "PR923",
        "a stop that never reaches the command",
        "Send the command the signal that it saves its work on.",
    ),
    (
        "PR924",
        "a value that js-yaml 3 and 4 read differently",
        "The cluster's policy says which one its REST server uses (job_yaml); quotes make it certain.",
    ),
    (
        "PR926",
        "scripts whose syntax was not checked",
        "Install bash where `pairun lint` runs; a job runs as before.",
    ),
    (
        "PR927",
        "two tasks that write the same path",
        "Give each its own path; the second replaces or refuses what the first has written.",
    ),
    (
        "PR930",
        "a parameter that the plugin spec does not declare",
        "Declare it under parameters.properties, or correct its name; see docs/modules.md.",
    ),
    (
        "PR931",
        "a completion that no number of instances reaches",
        "minFailedInstances and minSucceededInstances count at most the role's instances.",
    ),
    (
        "PR932",
        "a command that YAML joins to the one above it",
        "Write each command of the list in the same column.",
    ),
    (
        "PR933",
        "a size that lacks a unit",
        "Write the unit, as in 16Gi or 512Mi: a size without one is in bytes.",
    ),
    (
        "PR935",
        "a mistake in a shell script",
        "ShellCheck found it (pip install 'pairun[lint]'); its page on the code explains it.",
    ),
    (
        "PR936",
        "white space at the ends of a secret",
        "Quote the value, or use |- for a block without a line end; a server may refuse a padded one.",
    ),
    (
        "PR937",
        "a secret in plain text",
        "Move it below secrets, and write <% $secrets.NAME %> in its place; then replace the secret.",
    ),
)

CATALOGUE = {id_: ErrorKind(title, advice) for id_, title, advice in _ROWS}
"""Id to its kind, in the order of the ids."""

RETIRED = ("PR202", "PR405", "PR514", "PR797", "PR813", "PR906", "PR928", "PR929", "PR934")
"""Ids of earlier versions. No new error may have one of them."""
