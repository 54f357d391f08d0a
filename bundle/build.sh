#!/bin/bash
# Builds the bundle: pairun's runtime phase as one static program that runs in any Linux image.
#
# usage: bundle/build.sh [--arch ARCH] [--update] [--prepare] [--output FILE]      (as root, on Debian 12)
#
#   --arch      amd64 or arm64; default: this machine's. For the other one, the build installs a cross compiler
#   --update    use Debian's newest sources, and write their digests to bundle/sources.lock
#   --prepare   fill the cache and exit: for a layer of an image, before pairun itself is copied
#   --output    path of the program; default: build/bundle/runtime, with --arch build/bundle-ARCH/runtime
#
# PAIRUN_BUNDLE_CACHE (build/bundle-cache) is the folder of built files. A digest of all inputs names the
# libraries and CPython in it, so a change builds them again. The build always compiles and links pairun's
# own Python, in seconds. See docs/bundle.md.
set -euo pipefail

HERE=$(cd "$(dirname "$0")" && pwd)
ROOT=$(dirname "$HERE")
CACHE=${PAIRUN_BUNDLE_CACHE:-$ROOT/build/bundle-cache}
OUTPUT='' TARGET=''
UPDATE='' PREPARE=''
JOBS=${PAIRUN_BUNDLE_JOBS:-$(nproc)}

say() { echo "bundle: $*" >&2; }
die() { echo "bundle: error: $*" >&2 && exit 1; }

while [ $# -gt 0 ]; do
  case $1 in
    --arch) TARGET=${2:?--arch needs amd64 or arm64} && shift ;;
    --update) UPDATE=1 ;;
    --prepare) PREPARE=1 ;;
    --output) OUTPUT=$(realpath -m "${2:?--output needs a file}") && shift ;;
    *) sed -n '2,14s/^# \{0,1\}//p' "$0" && exit 2 ;;
  esac
  shift
done

# One date for everything, so that the same sources give the same file.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-1700000000}
export LC_ALL=C TZ=UTC
unset CFLAGS CPPFLAGS LDFLAGS MAKEFLAGS
umask 022

# Runs a command, and shows its output only if it fails.
quietly() {
  local before
  before=$(wc -l 2>/dev/null <"$BUILD/log" || echo 0)
  "$@" >>"$BUILD/log" 2>&1 || {
    tail -n "+$((before + 1))" "$BUILD/log" | tail -n 40 | cut -c 1-500 >&2
    die "a command failed; all output is in $BUILD/log: $(echo "$*" | cut -c 1-200)"
  }
}
make_quietly() { quietly make -j"$JOBS" "$@"; }

. "$HERE/downloads.sh"
. "$HERE/sources.sh"
. "$HERE/target.sh"
. "$HERE/libraries.sh"
. "$HERE/cpython.sh"
. "$HERE/link.sh"
. "$HERE/openssh.sh"

use_target "${TARGET:-$NATIVE}"
OUTPUT=${OUTPUT:-$ROOT/build/bundle${TARGET:+-$TARGET}/runtime}
mkdir -p "$CACHE" "$(dirname "$OUTPUT")"
CACHE=$(cd "$CACHE" && pwd)
exec 9>"$CACHE/lock"
flock 9

[ -z "$CROSS" ] || BUILD_PACKAGES="$BUILD_PACKAGES $(compiler_packages)"
install_build_packages
# shellcheck disable=SC2086 # a list of words
[ -z "$UPDATE" ] || update_lock $SOURCE_PACKAGES openssh

# --- libraries and CPython, from the cache if nothing changed ---

inputs() {
  # shellcheck disable=SC2086 # a list of words
  locked_files $SOURCE_PACKAGES
  cat "$HERE"/{target,libraries,cpython}.sh "$HERE/gcc-musl"
  compiler_versions
  echo "$ARCH $SOURCE_DATE_EPOCH"
}

# Sets $BUILD and what is below it for the target.
name_build() {
  BUNDLE_BUILD=$CACHE/$(inputs | sha256sum | cut -c1-16)
  BUILD=$BUNDLE_BUILD
  BUNDLE_COMPILER=$BUILD/compiler
  PREFIX=$BUILD/prefix
  export BUNDLE_BUILD BUNDLE_COMPILER
}
export PATH="$HERE:$PATH"

build_static_python() {
  local package version
  rm -rf "$BUILD"
  mkdir -p "$PREFIX"/{lib,include}
  prepare_compiler
  # shellcheck disable=SC2086 # a list of words
  locked $SOURCE_PACKAGES >"$BUILD/versions"
  while read -r package version; do
    unpack_source "$package" "$version" </dev/null
  done <"$BUILD/versions"
  build_libraries
  build_cpython
  { cat "$BUILD/versions" && echo "musl $(musl_version)"; } >"$BUILD/inside"
  # keep what is linked later, without its sources
  rm -rf "$BUILD"/{openssl,zlib,bzip2,xz-utils}
  find "$BUILD/python3.11" -name '*.o' -delete
  touch "$BUILD/complete"
}

# Builds that are not used for a week are removed below.
prepare_python() {
  name_build
  [ -e "$BUILD/complete" ] || build_static_python
  touch "$BUILD"
}

# The program that compiles Python's modules runs here, so it is of this machine's architecture.
use_target "$NATIVE"
prepare_python
STATIC_PYTHON=$BUILD/python3.11/python
use_target "${TARGET:-$NATIVE}"
[ -z "$CROSS" ] || prepare_python
find "$CACHE" -mindepth 1 -maxdepth 1 -type d -regex '.*/[0-9a-f]+' -mtime +7 -exec rm -rf {} +

install_packages
prepare_openssh
[ -z "$PREPARE" ] || exit 0
link_bundle
install_openssh
say "$OUTPUT: $(stat -c %s "$OUTPUT") bytes, sha256 $(sha256sum "$OUTPUT" | cut -d' ' -f1)"
