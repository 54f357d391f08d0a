#!/bin/bash
# Builds the bundle: pairun's runtime phase as one static program that runs in any Linux image.
#
# usage: bundle/build.sh [--arch ARCH] [--update] [--prepare] [--output FILE]      (as root, on Debian 12)
#
#   --arch      amd64 or arm64; by default this machine's own, for the other one a cross compiler is installed
#   --update    take the newest sources that Debian has, and write their digests to bundle/sources.lock
#   --prepare   fill the cache and stop: for a layer of an image, before pairun itself is copied
#   --output    where the program goes; by default build/bundle/runtime, build/bundle-ARCH/runtime for --arch
#
# PAIRUN_BUNDLE_CACHE (build/bundle-cache) keeps what was built. The libraries and CPython in it are
# named by a digest of all that they depend on and are built again when one of these changes;
# pairun's own Python is compiled and linked anew each time, in seconds. docs/bundle.md tells more.
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

# One date for everything: what is built twice from the same sources is the same file.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-1700000000}
export LC_ALL=C TZ=UTC
unset CFLAGS CPPFLAGS LDFLAGS MAKEFLAGS
umask 022

# Runs a command; what it prints is shown only when it fails.
quietly() {
  local before
  before=$(wc -l 2>/dev/null <"$BUILD/log" || echo 0)
  "$@" >>"$BUILD/log" 2>&1 || {
    tail -n "+$((before + 1))" "$BUILD/log" | tail -n 40 | cut -c 1-500 >&2
    die "this failed, as $BUILD/log tells in full: $(echo "$*" | cut -c 1-200)"
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

# --- libraries and CPython, from the cache where nothing changed ---

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
  # what is linked later stays, without what it was made of
  rm -rf "$BUILD"/{openssl,zlib,bzip2,xz-utils}
  find "$BUILD/python3.11" -name '*.o' -delete
  touch "$BUILD/complete"
}

# Builds of other versions that nobody asked for in a week go.
prepare_python() {
  name_build
  [ -e "$BUILD/complete" ] || build_static_python
  touch "$BUILD"
}

# The program that compiles Python's modules must run here: it is of this machine's architecture.
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
