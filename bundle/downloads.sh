# shellcheck shell=bash
# Downloads, with a few attempts and errors that say what to do; read by build.sh, rclone.sh and
# image/root.sh. The scripts that use a download compare it with the digests of a lock.

DOWNLOAD_ATTEMPTS=3

# Runs a command that downloads, and retries failures that may be temporary. LOG keeps the output of
# the last attempt, for download_failed.
download() { # download LOG COMMAND...
  local log=$1 attempt delay_s=5
  shift
  for ((attempt = 1; ; attempt++)); do
    "$@" >"$log" 2>&1 && return
    [ "$(download_failure "$log")" = passing ] && [ "$attempt" -lt "$DOWNLOAD_ATTEMPTS" ] || return 1
    say "attempt $attempt of $DOWNLOAD_ATTEMPTS failed, retrying in $delay_s s: $(download_reason "$log" | head -n 1)"
    sleep "$delay_s"
    delay_s=$((delay_s * 3))
  done
}

# Prints the kind of failure that apt or pip printed: gone (the server has no such version), passing
# (the network or a server), other.
download_failure() { # download_failure LOG
  # pip reports a version as missing, too, if no server answered.
  if grep -qE 'Retrying \(Retry|TimeoutError|ConnectionError|IncompleteRead|HTTP error 5|Temporary failure|Could not (connect|resolve)|Connection (failed|timed out)' "$1"; then
    echo passing
  elif grep -qE '404 +Not Found|HTTP error 404|Unable to find a source package|(Version|Release) .* was not found|Unable to locate package|No matching distribution' "$1"; then
    echo gone
  elif grep -qE 'Failed to fetch|Unable to fetch|Hash Sum mismatch' "$1"; then
    echo passing
  else
    echo other
  fi
}

# Prints the errors of apt or pip; without any, the last lines.
download_reason() { # download_reason LOG
  local errors
  # pip names the network's failure in a warning only
  errors=$(grep -E '^(E:|ERROR:|WARNING: Retrying)' "$1" | awk '!printed[$0]++' | head -n 5 | cut -c 1-300)
  [ -n "$errors" ] || errors=$(tail -n 5 "$1" | cut -c 1-300)
  echo "$errors"
}

# Ends the build: what could not be downloaded, what apt or pip printed, and what to do.
download_failed() { # download_failed WHAT LOG WHAT_TO_DO_IF_IT_IS_GONE
  download_reason "$2" | sed 's/^/  /' >&2
  case $(download_failure "$2") in
    gone) die "cannot download $1: the server does not have it: $3" ;;
    passing) die "cannot download $1 in $DOWNLOAD_ATTEMPTS attempts because of the network or the server (above): check both and the proxy, then build again; finished downloads are kept" ;;
    *) die "cannot download $1, for the reason above; all output is in $2" ;;
  esac
}

# Source packages need a deb-src entry. A folder of apt's own state leaves /etc/apt as it is.
private_apt() { # private_apt apt-get|apt-cache ARGUMENTS...
  local tool=$1
  shift
  "$tool" -q -o Dir::Etc::sourcelist="$CACHE/apt/sources.list" \
    -o Dir::Etc::sourceparts="$CACHE/apt/sources.list.d" \
    -o Dir::State::lists="$CACHE/apt/lists" -o Dir::Cache="$CACHE/apt/cache" \
    -o APT::Architectures::=amd64 -o APT::Architectures::=arm64 -o Acquire::Retries=3 -o APT::Sandbox::User=root "$@"
}

install_build_packages() {
  local missing log=$CACHE/packages.log
  # shellcheck disable=SC2086 # a list of words
  missing=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' $BUILD_PACKAGES 2>&1 | grep -v '^ii ' || true)
  [ -n "$missing" ] || return 0
  say "installing $BUILD_PACKAGES"
  # A machine's other sources may fail; the packages of Debian that are missing then show below.
  download "$log" apt-get -q -o Acquire::Retries=3 update ||
    download_failed "Debian's list of packages" "$log" "check /etc/apt/sources.list"
  # shellcheck disable=SC2086
  DEBIAN_FRONTEND=noninteractive download "$log" apt-get -q -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 \
    install -y --no-install-recommends $BUILD_PACKAGES ||
    download_failed "the compiler ($BUILD_PACKAGES)" "$log" "build on Debian 12, with its mirrors"
}

# Downloads Debian's lists of sources, and with BINARIES its lists of packages for that architecture.
list_sources() {
  local file binaries=${BINARIES:-} log=$CACHE/apt/update.log
  mkdir -p "$CACHE"/downloads "$CACHE"/apt/{lists/partial,cache/archives/partial,sources.list.d}
  : >"$CACHE/apt/sources.list"
  rm -f "$CACHE"/apt/sources.list.d/*
  # Of the machine's entries those of Debian itself, in either of apt's two formats.
  if [ -f /etc/apt/sources.list ]; then
    sed -n '/debian/ s/^deb /deb-src /p' /etc/apt/sources.list >"$CACHE/apt/sources.list"
    [ -z "$binaries" ] || sed -nE "/debian/ s/^deb (\\[([^]]*)\\] )?/deb [arch=$binaries \\2] /p" \
      /etc/apt/sources.list >>"$CACHE/apt/sources.list"
  fi
  for file in /etc/apt/sources.list.d/debian*.sources; do
    [ ! -f "$file" ] || sed "s/^Types:.*/Types: deb-src${binaries:+ deb\\nArchitectures: $binaries}/" "$file" >"$CACHE/apt/sources.list.d/${file##*/}"
  done
  # The locks have versions of the security suite, which a minimal machine may not list.
  if ! grep -qs -- -security "$CACHE/apt/sources.list" "$CACHE"/apt/sources.list.d/*; then
    file=$(sed -nE 's#^(deb.*/debian)/? (bookworm) main.*#\1-security \2-security main#p' "$CACHE/apt/sources.list")
    echo "$file" >>"$CACHE/apt/sources.list"
  fi
  # With an old list, apt would report a version as missing that Debian has (apt-get(8), --error-on).
  download "$log" private_apt apt-get update --error-on=any ||
    download_failed "Debian's list of sources" "$log" "check /etc/apt/sources.list"
}
