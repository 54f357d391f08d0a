"""The labels and names of pairun's objects, and their syntax in Kubernetes."""

JOB_LABEL = "pairun/job"
ROLE_LABEL = "pairun/role"
INDEX_LABEL = "pairun/index"

INDEXED = "batch.kubernetes.io/job-completion-index"
"""The Pod annotation and label with the index in an Indexed Job."""

ROLES = (ROLE_LABEL, "FC_TASKROLE_NAME", "jobset.sigs.k8s.io/replicatedjob-name",
         "training.kubeflow.org/replica-type")  # fmt: skip
INDEXES = (INDEX_LABEL, "FC_TASK_INDEX", INDEXED, "training.kubeflow.org/replica-index",
           "apps.kubernetes.io/pod-index")  # fmt: skip
"""Labels and annotations of Pods with the role and the number in it, by pairun and by controllers."""

LABEL_VALUE = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
"""An expression for a non-empty value (Kubernetes, "Labels and Selectors")."""

LABEL_KEY = r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
"""An expression for a key with its prefix; unlike `LABEL_VALUE`, without limits of length."""

OBJECT_NAME = "[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?"
"""An expression for the name of an object (Kubernetes, "Object Names and IDs")."""

CONFIG_SECRET, REGISTRY_SECRET, KEY_SECRET = "configcred", "regcred", "rendezvous"
JOB_CONFIG = "job"
"""The ends of the names of a job's Secrets and of its ConfigMap; the workload's name precedes them."""
