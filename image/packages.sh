# shellcheck shell=bash
# Debian's packages of the image, in the versions and with the digests of the lock; read by root.sh.

# "package architecture version sha256 file", a line for each.
PACKAGES_LOCK=${PAIRUN_PACKAGES_LOCK:-$HERE/packages.lock}

package_names() { sed 's/#.*//' "$HERE/packages.txt" | awk 'NF { print $1 }' | sort -u; }
locked_packages() { awk -v arch="$ARCH" '$2 == arch' "$PACKAGES_LOCK"; }

# Downloads packages, each PACKAGE=VERSION, to $PACKAGES; apt checks them against the archive's signature.
get_packages() { # get_packages PACKAGE...
  say "downloading Debian's packages for $ARCH"
  list_sources
  (cd "$PACKAGES" && download "$CACHE/packages.log" private_apt apt-get download -o APT::Architecture="$ARCH" "$@") ||
    download_failed "Debian's packages for $ARCH" "$CACHE/packages.log" \
      "take Debian's newest packages with image/root.sh --update for each architecture, and commit $PACKAGES_LOCK"
}

update_packages() {
  local file
  rm -rf "$PACKAGES" && mkdir -p "$PACKAGES"
  # shellcheck disable=SC2046 # a list of words
  get_packages $(package_names)
  {
    awk -v arch="$ARCH" '$2 != arch' "$PACKAGES_LOCK" 2>/dev/null || true
    for file in "$PACKAGES"/*.deb; do
      echo "$(dpkg-deb -f "$file" Package) $ARCH $(dpkg-deb -f "$file" Version) $(sha256sum <"$file" | cut -d' ' -f1) ${file##*/}"
    done
  } | sort >"$PACKAGES_LOCK.new"
  mv "$PACKAGES_LOCK.new" "$PACKAGES_LOCK"
}

# Brings the locked packages to $PACKAGES, and nothing else: each file has the digest of the lock.
lock_packages() {
  local name version digest file missing=()
  diff <(package_names) <(locked_packages | cut -d' ' -f1 | sort) >&2 ||
    die "$PACKAGES_LOCK has other packages for $ARCH (>) than packages.txt (<): run image/root.sh --update"
  mkdir -p "$PACKAGES"
  while read -r name _ version digest file; do
    [ "$(sha256sum 2>/dev/null <"$PACKAGES/$file" | cut -d' ' -f1)" = "$digest" ] || missing+=("$name=$version")
  done < <(locked_packages)
  # of an earlier lock
  (cd "$PACKAGES" && comm -23 <(ls) <(locked_packages | awk '{ print $5 }' | sort) | xargs -r rm)
  [ "${#missing[@]}" = 0 ] || get_packages "${missing[@]}"
  (cd "$PACKAGES" && locked_packages | awk '{ print $4 "  " $5 }' | sha256sum --check --quiet >&2) ||
    die "a package of Debian is not what $PACKAGES_LOCK says (above): the build stops"
}
