set -o errexit
set -o nounset
if (set -o pipefail) 2>/dev/null; then set -o pipefail; fi
echo "at work as $PAI_TASK_ROLE_INSTANCES, not sesame-opens"
