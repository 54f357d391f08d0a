# shellcheck shell=bash
# pairun's own part: its Python modules compiled, and everything linked to one file; read by build.sh.

# attrs, Jinja, requests and what they stand on, in the versions of pairun's lock, by their digests, into $PACKAGES.
install_packages() {
  local lock=$BUILD/packages.lock
  awk '/^[a-z]/ { wanted = /^(attrs|charset-normalizer|idna|jinja2|markupsafe|requests|urllib3)==/ } wanted' "$ROOT/requirements.lock" >"$lock"
  PACKAGES=$BUILD/packages-$(sha256sum <"$lock" | cut -c1-16)
  if [ ! -e "$PACKAGES/complete" ]; then
    say "installing attrs, Jinja and requests"
    [ -x "$BUILD/pip/bin/python" ] || quietly /usr/bin/python3 -m venv "$BUILD/pip"
    rm -rf "$PACKAGES"
    download "$BUILD/pip.log" "$BUILD/pip/bin/python" -m pip install --disable-pip-version-check --no-compile \
      --require-hashes --no-deps --only-binary :all: --target "$PACKAGES" -r "$lock" ||
      download_failed "attrs, Jinja and requests" "$BUILD/pip.log" "renew the locks with make lock"
    touch "$PACKAGES/complete"
  fi
}

link_bundle() {
  local work=$BUILD/link
  rm -rf "$work"
  mkdir -p "$work"
  # A set's order depends on this seed, and goes into the code.
  quietly env -i PYTHONHASHSEED=0 "$STATIC_PYTHON" -S -B -X no_debug_ranges "$HERE/freeze.py" --lib "$BUILD/python3.11/Lib" \
    --packages "$PACKAGES" --root "$ROOT" --inside "$BUILD/inside" --output "$work"
  (
    cd "$work"
    cp "$HERE"/*.c .
    # musl gives a thread no more stack than the program's header asks for: 8 MiB, as elsewhere.
    quietly "$CC" -static -no-pie -O2 -fno-pie -fstack-protector-strong -Wall -I"$BUILD/python3.11" -I"$BUILD/python3.11/Include" \
      -L"$PREFIX/lib" -Wl,--gc-sections -Wl,-z,stack-size=8388608 -Wl,--build-id=none \
      -o runtime *.c "$BUILD/python3.11/libpython3.11.a" \
      "$BUILD/python3.11/Modules/_decimal/libmpdec/libmpdec.a" -lssl -lcrypto -lz -lbz2 -llzma -lm
    "$STRIP" --strip-all runtime
  )
  mkdir -p "$(dirname "$OUTPUT")"
  # A running bundle keeps its file: the new one takes its name.
  cp "$work/runtime" "$OUTPUT.new"
  mv "$OUTPUT.new" "$OUTPUT"
  install_licences
}

# Debian's licence file of each package that is linked into the program and into OpenSSH.
install_licences() {
  local folder package version
  folder=$(dirname "$OUTPUT")/licences
  mkdir -p "$folder"
  # shellcheck disable=SC2086 # a list of words
  while read -r package version; do
    tar -xOf "$(source_folder "$package" "$version")"/*.debian.tar.* debian/copyright >"$folder/$package"
  done < <(locked $SOURCE_PACKAGES openssh)
  cp /usr/share/doc/musl-dev/copyright "$folder/musl"
}
