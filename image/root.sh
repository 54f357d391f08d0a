#!/bin/bash
# Makes the image's file systems, a folder for each layer, without running a program of the target:
# so an image for arm64 is made on amd64, and the other way round.
#
# usage: image/root.sh --arch ARCH --output FOLDER      (as root, on Debian 12)
#        image/root.sh --arch ARCH --update
#
# --update       take the newest packages that Debian has, and write their digests to image/packages.lock
# FOLDER/system  Debian's files that packages.txt names, users, certificates
# FOLDER/pairun  Python's packages in the versions of requirements.lock, and pairun
# FOLDER/openssh of /opt/pairun/tools
#
# PYTHON is an interpreter of this machine with pip and what both locks name. The bundle is at /opt/pairun.
set -euo pipefail

HERE=$(cd "$(dirname "$0")" && pwd)
ROOT=$(dirname "$HERE")
CACHE=${PAIRUN_BUNDLE_CACHE:-$ROOT/build/bundle-cache}/image
ARCH='' OUTPUT='' UPDATE=''

say() { echo "image: $*" >&2; }
die() { echo "image: error: $*" >&2 && exit 1; }
quietly() { # what a command prints is shown only when it fails
  "$@" >"$WORK/log" 2>&1 || {
    tail -n 40 "$WORK/log" | cut -c 1-500 >&2
    die "a command failed: $(echo "$*" | cut -c 1-200)"
  }
}

while [ $# -gt 0 ]; do
  case $1 in
    --arch) ARCH=${2:?--arch needs amd64 or arm64} && shift ;;
    --update) UPDATE=1 ;;
    --output) OUTPUT=$(realpath -m "${2:?--output needs a folder}") && shift ;;
    *) sed -n '2,13s/^# \{0,1\}//p' "$0" && exit 2 ;;
  esac
  shift
done
[ -n "$OUTPUT$UPDATE" ] || die "--output names the folder"

export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-1700000000} LC_ALL=C TZ=UTC
umask 022
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT

. "$ROOT/bundle/downloads.sh"
. "$ROOT/bundle/target.sh"
. "$HERE/packages.sh"
use_target "${ARCH:-$NATIVE}"
BINARIES=$ARCH
PACKAGES=$CACHE/packages-$ARCH
SITE=$OUTPUT/pairun/opt/pairun/lib/python3.11/site-packages

# Python's packages for the target, and pairun; each in the version and with the digest of the lock.
install_python() {
  local tag platforms=()
  say "installing Python's packages for $ARCH"
  for tag in manylinux_2_34 manylinux_2_28 manylinux_2_17 manylinux2014; do
    platforms+=(--platform "${tag}_$MACHINE")
  done
  download "$WORK/pip.log" "$PYTHON" -m pip install --disable-pip-version-check --no-compile --require-hashes --no-deps \
    --only-binary :all: --implementation cp --python-version 3.11 "${platforms[@]}" \
    --target "$SITE" -r "$ROOT/requirements.lock" ||
    download_failed "Python's packages for $ARCH" "$WORK/pip.log" "renew the locks with make lock"
  quietly "$PYTHON" -m hatchling build -t wheel -d "$WORK/wheel"
  # by its name: with a path, pip would write the path into the image (direct_url.json)
  quietly "$PYTHON" -m pip install --disable-pip-version-check --no-compile --no-deps --no-index \
    --find-links "$WORK/wheel" --target "$SITE" pairun
  rm -rf "${SITE:?}/bin"
  # the manual page, where man(1) looks beside the program
  mv "$SITE/share" "$OUTPUT/pairun/opt/pairun/share"
  find "$SITE" -name '*.so' -exec "$STRIP" --strip-unneeded {} +
}

mkdir -p "$CACHE"
CACHE=$(cd "$CACHE" && pwd)
exec 9>"$CACHE/lock"
flock 9
[ -z "$UPDATE" ] || update_packages
[ -n "$OUTPUT" ] || exit 0
PYTHON=${PYTHON:?an interpreter with pip and what both locks name}
rm -rf "$OUTPUT"
mkdir -p "$OUTPUT"
lock_packages
(cd "$ROOT" && install_python)
"$PYTHON" -B -X no_debug_ranges "$HERE/files.py" --packages "$PACKAGES" --machine "$MACHINE" --output "$OUTPUT"
cp -r /opt/pairun/licences "$OUTPUT/pairun/opt/pairun/"
mkdir "$OUTPUT/openssh"
(cd /opt/pairun/tools && cp -r ssh sshd sftp-server ssh-session "$OUTPUT/openssh/")
PYTHONPATH=$ROOT "$PYTHON" -B "$HERE/materials.py" "$OUTPUT/system" "$OUTPUT/pairun/opt/pairun" "$SITE" "$(musl_version)"
find "$OUTPUT" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
for layer in "$OUTPUT"/*; do say "$layer: $(du -sm "$layer" | cut -f1) MB"; done
