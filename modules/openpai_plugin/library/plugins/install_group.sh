# Install a group of packages from the folder GROUP-SYSTEM beside this script: GROUP.
set -e
. /etc/os-release
cd "$(dirname "$0")/$1-$ID$VERSION_ID"
packages=$(cat packages)
# shellcheck disable=SC2086 # names, separated by spaces
verify() { dpkg -V $packages > /dev/null 2>&1; }
verify || { DEBIAN_FRONTEND=noninteractive dpkg -i ./*.deb < /dev/null && verify; }
