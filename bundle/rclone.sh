#!/bin/bash
# Builds the tools that mount object stores in any image, as static programs from Debian's sources:
# rclone with the stores below, and the fusermount that it calls to mount.
#
# usage: bundle/rclone.sh [--arch ARCH] [--update] [--output FOLDER]      (as root, on Debian 12)
#
#   --arch      amd64 or arm64; default: this machine's
#   --update    use Debian's newest sources, and write their digests to bundle/sources.lock
#   --output    folder of the programs; default: build/bundle/tools, with --arch build/bundle-ARCH/tools
#
# PAIRUN_BUNDLE_CACHE (build/bundle-cache) keeps them, named by a digest of their inputs.
set -euo pipefail

HERE=$(cd "$(dirname "$0")" && pwd)
ROOT=$(dirname "$HERE")
CACHE=${PAIRUN_BUNDLE_CACHE:-$ROOT/build/bundle-cache}/rclone
OUTPUT='' TARGET=''
UPDATE=''
# `mount` needs them, `lsf` checks that a store answers; sftp and webdav are what people have.
BACKENDS="azureblob b2 ftp googlecloudstorage hdfs http local s3 sftp swift webdav"
COMMANDS="lsf mount version"

say() { echo "bundle: $*" >&2; }
die() { echo "bundle: error: $*" >&2 && exit 1; }

while [ $# -gt 0 ]; do
  case $1 in
    --arch) TARGET=${2:?--arch needs amd64 or arm64} && shift ;;
    --update) UPDATE=1 ;;
    --output) OUTPUT=$(realpath -m "${2:?--output needs a folder}") && shift ;;
    *) sed -n '2,11s/^# \{0,1\}//p' "$0" && exit 2 ;;
  esac
  shift
done

export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-1700000000} LC_ALL=C TZ=UTC
unset CFLAGS CPPFLAGS LDFLAGS MAKEFLAGS GOFLAGS
umask 022

quietly() { # shows the output of a command only if it fails
  "$@" >"$CACHE/log" 2>&1 || {
    tail -n 40 "$CACHE/log" | cut -c 1-500 >&2
    die "a command failed: $(echo "$*" | cut -c 1-200)"
  }
}

. "$HERE/downloads.sh"
. "$HERE/sources.sh"
. "$HERE/target.sh"
SOURCE_PACKAGES="rclone fuse3"
BUILD_PACKAGES="build-essential ca-certificates dpkg-dev golang-go linux-libc-dev musl-dev musl-tools patch xz-utils"

use_target "${TARGET:-$NATIVE}"
[ -z "$CROSS" ] || BUILD_PACKAGES="$BUILD_PACKAGES $(compiler_packages)"
OUTPUT=${OUTPUT:-$ROOT/build/bundle${TARGET:+-$TARGET}/tools}
mkdir -p "$CACHE" "$OUTPUT"
CACHE=$(cd "$CACHE" && pwd)
exec 9>"$CACHE/lock"
flock 9
# shellcheck disable=SC2086 # a list of words
[ -z "$UPDATE" ] || update_lock $SOURCE_PACKAGES

# shellcheck disable=SC2086
inputs() { locked_files $SOURCE_PACKAGES && cat "$HERE"/{rclone,target}.sh "$HERE/gcc-musl" && echo "$ARCH"; }
DIGEST=$(inputs | sha256sum | cut -c1-16)
BUILD=$CACHE/$DIGEST

build_rclone() (
  local source=$BUILD/go/src/github.com/rclone/rclone library
  # The libraries that it is made of are packages of their own, with source in them.
  # shellcheck disable=SC2046 # a list of words
  BUILD_PACKAGES=$(sed -n '/^Build-Depends:/,/^[A-Z].*:/p' "$BUILD/rclone/debian/control" |
    grep -oE 'golang-[a-z0-9.-]+-dev' | sort -u | tr '\n' ' ')
  install_build_packages
  say "building rclone"
  mkdir -p "$(dirname "$source")" "$BUILD/rclone/pairun"
  mv "$BUILD/rclone" "$source"
  {
    echo 'package main'
    echo 'import ('
    for library in $BACKENDS; do echo "_ \"github.com/rclone/rclone/backend/$library\""; done
    for library in $COMMANDS; do echo "_ \"github.com/rclone/rclone/cmd/$library\""; done
    echo '"github.com/rclone/rclone/cmd"'
    echo ')'
    echo 'func main() { cmd.Main() }'
  } >"$source/pairun/main.go"
  cd "$source"
  GOARCH=$ARCH GO111MODULE=off CGO_ENABLED=0 GOPATH=$BUILD/go:/usr/share/gocode GOCACHE=$BUILD/cache \
    quietly go build -trimpath -ldflags '-s -w -buildid=' -o "$BUILD/rclone.new" ./pairun
  note_libraries
)

# Writes which of Debian's packages are linked into rclone: "package version", and their licences.
note_libraries() {
  local package files='{{range .GoFiles}}{{$.Dir}}/{{.}}{{"\n"}}{{end}}'
  mkdir -p "$BUILD/licences"
  GOARCH=$ARCH GO111MODULE=off CGO_ENABLED=0 GOPATH=$BUILD/go:/usr/share/gocode GOCACHE=$BUILD/cache \
    go list -deps -f "$files" ./pairun | grep ^/usr/share/gocode/ | xargs realpath | xargs dpkg -S |
    sed 's/: .*//' | sort -u >"$BUILD/packages"
  dpkg -S "$(realpath "$(go env GOROOT)/bin/go")" | sed 's/: .*//' >>"$BUILD/packages"
  while read -r package; do
    cp "/usr/share/doc/$package/copyright" "$BUILD/licences/$package"
    dpkg-query -W -f '${Package} ${Version}\n' "$package"
  done <"$BUILD/packages" >"$BUILD/libraries"
}

build_fusermount() (
  say "building fusermount"
  cd "$BUILD/fuse3"
  # What meson would find out; the file that names users' mounts (mtab) is not for containers.
  cat >util/fuse_config.h <<'END'
#define PACKAGE_VERSION "3"
#define IGNORE_MTAB 1
END
  quietly "$HERE/gcc-musl" -static -Os -s -DFUSE_CONF='"/etc/fuse.conf"' -D_FILE_OFFSET_BITS=64 \
    -DFUSE_USE_VERSION=30 -Iutil -Ilib -Iinclude -o "$BUILD/fusermount.new" \
    util/fusermount.c lib/mount_util.c
)

if [ ! -e "$BUILD/complete" ]; then
  install_build_packages
  rm -rf "$BUILD"
  mkdir -p "$BUILD"
  export BUNDLE_BUILD=$BUILD
  prepare_compiler
  # shellcheck disable=SC2086
  locked $SOURCE_PACKAGES >"$BUILD/versions"
  while read -r package version; do
    unpack_source "$package" "$version" </dev/null
  done <"$BUILD/versions"
  build_fusermount
  build_rclone
  chmod -R u+w "$BUILD/go"
  rm -rf "$BUILD/go" "$BUILD/cache" "$BUILD/fuse3"
  mv "$BUILD/rclone.new" "$BUILD/rclone"
  mv "$BUILD/fusermount.new" "$BUILD/fusermount"
  touch "$BUILD/complete"
fi
touch "$BUILD"
find "$CACHE" -mindepth 1 -maxdepth 1 -type d -regex '.*/[0-9a-f]+' -mtime +7 -exec rm -rf {} +
install -m 755 "$BUILD/rclone" "$BUILD/fusermount" "$OUTPUT/"
install -D -m 644 -t "$OUTPUT/../licences" "$BUILD"/licences/*
install -m 644 "$BUILD/libraries" "$OUTPUT/../licences/rclone.packages"
while read -r package version; do
  tar -xOf "$(source_folder "$package" "$version")"/*.debian.tar.* debian/copyright >"$OUTPUT/../licences/$package"
done <"$BUILD/versions"
say "$OUTPUT: rclone $(stat -c %s "$OUTPUT/rclone"), fusermount $(stat -c %s "$OUTPUT/fusermount") bytes"
