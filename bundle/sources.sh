# shellcheck shell=bash
# The Debian source packages that the bundle is made of; read by build.sh.

SOURCE_PACKAGES="python3.11 openssl zlib bzip2 xz-utils"
# Packages of the machine that the build uses. musl itself is a binary package: musl-dev.
BUILD_PACKAGES="build-essential ca-certificates dpkg-dev linux-libc-dev musl-dev musl-tools patch perl python3 python3-venv xz-utils"

# What the bundle and its tools are made of: "package version sha256 file", a line for each file.
LOCK=${PAIRUN_SOURCES_LOCK:-$HERE/sources.lock}

# Prints "package version" of each of these packages, as the lock has them.
locked() { # locked PACKAGE...
  local name version
  for name in "$@"; do
    version=$(awk -v name="$name" '$1 == name { print $2; exit }' "$LOCK")
    [ -n "$version" ] || die "$LOCK has no $name: run again with --update"
    echo "$name $version"
  done
}

# Prints the lines of the lock for these packages: what is built from them depends on the digests, too.
locked_files() { # locked_files PACKAGE...
  local name
  locked "$@" >/dev/null
  for name in "$@"; do
    awk -v name="$name" '$1 == name' "$LOCK"
  done
}

# Downloads the newest sources that the archive gives, and writes their versions and digests to the lock.
update_lock() { # update_lock PACKAGE...
  local name version
  say "asking Debian for the newest sources"
  list_sources
  for name in "$@"; do
    version=$(download_newest "$name")
    {
      awk -v name="$name" '$1 != name' "$LOCK"
      (cd "$(source_folder "$name" "$version")" && sha256sum "${name}"_*) |
        awk -v name="$name" -v version="$version" '{ print name, version, $1, $2 }'
    } | sort >"$LOCK.new"
    mv "$LOCK.new" "$LOCK"
  done
}

# Each file of a source package has the digest that the lock gives, and there is no other file.
check_source() { # check_source PACKAGE VERSION
  local files expected found
  files=$(source_folder "$1" "$2")
  expected=$(awk -v name="$1" -v version="$2" '$1 == name && $2 == version { print $3 "  " $4 }' "$LOCK" | sort)
  found=$(cd "$files" && find . -type f ! -name log ! -name complete -printf '%P\0' | xargs -0r sha256sum | sort)
  [ -n "$expected" ] && [ "$expected" = "$found" ] || {
    diff <(echo "$expected") <(echo "$found") >&2 || true
    die "$1 $2 is not what $LOCK says (< the lock, > $files): the build stops"
  }
}

# Prints the version that was downloaded. A mirror may list a version before it has its files: then
# the build uses the version before, with a warning, because it may lack a fix.
download_newest() { # download_newest PACKAGE
  local version
  for version in $(source_versions "$1"); do
    if download_source "$1" "$version"; then
      echo "$version"
      return
    fi
    [ "$(download_failure "$(source_log "$1" "$version")")" = gone ] || source_failed "$1" "$version"
    say "WARNING: this mirror lists $1 $version but does not have its files; using an older version"
  done
  die "no source package $1 for this machine: the bundle is built on Debian 12, with its mirrors"
}

source_versions() { # source_versions PACKAGE: newest first
  private_apt apt-cache showsrc --only-source "$1" | sed -n 's/^Version: //p' | sort -u -V -r
}

download_source() { # download_source PACKAGE VERSION
  local files
  files=$(source_folder "$1" "$2")
  [ ! -e "$files/complete" ] || return 0
  rm -rf "$files"
  mkdir -p "$files"
  # apt checks the files against the archive's signature
  (cd "$files" && download "$files/log" private_apt apt-get source --download-only "$1=$2") || return 1
  touch "$files/complete"
}

source_failed() { # source_failed PACKAGE VERSION
  download_failed "the source of $1 $2" "$(source_log "$1" "$2")" \
    "use Debian's newest sources with --update, and commit $LOCK"
}

source_log() { echo "$(source_folder "$1" "$2")/log"; } # source_log PACKAGE VERSION

source_folder() { echo "$CACHE/downloads/$1_${2#*:}"; } # without the epoch: file names have none

# Unpacks a source package with Debian's patches to $BUILD/PACKAGE.
unpack_source() { # unpack_source PACKAGE VERSION
  local files
  files=$(source_folder "$1" "$2")
  [ -e "$files/complete" ] || list_sources
  download_source "$1" "$2" || source_failed "$1" "$2"
  check_source "$1" "$2"
  quietly dpkg-source --no-check -x "$files"/*.dsc "$BUILD/$1"
}
