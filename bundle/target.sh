# shellcheck shell=bash
# The machine that a program is built for, and its compiler; read by build.sh and rclone.sh.
#
# For the machine's own architecture the compiler is gcc with Debian's musl. For the other one it is
# Debian's cross compiler (gcc-aarch64-linux-gnu) with the same version of musl for that architecture.

NATIVE=$(dpkg --print-architecture)

# Sets the names of an architecture: amd64 or arm64, as Debian calls them.
use_target() { # use_target ARCHITECTURE
  ARCH=$1
  case $ARCH in
    amd64) MACHINE=x86_64 OPENSSL_TARGET=linux-x86_64 ;;
    arm64) MACHINE=aarch64 OPENSSL_TARGET=linux-aarch64 ;;
    *) die "no bundle for $ARCH machines: there are amd64 and arm64" ;;
  esac
  GNU=$MACHINE-linux-gnu
  CROSS=''
  [ "$ARCH" = "$NATIVE" ] || CROSS=1
  export AR=$GNU-ar RANLIB=$GNU-ranlib STRIP=$GNU-strip READELF=$GNU-readelf CC=gcc-musl
  export BUNDLE_TRIPLET=$MACHINE-linux-musl BUNDLE_GCC=$GNU-gcc-12
}

# Prints the packages of Debian that compile for the target.
compiler_packages() {
  [ -n "$CROSS" ] || { echo "musl-dev gcc-12 binutils linux-libc-dev" && return; }
  echo "gcc-12-${GNU//_/-} binutils-${GNU//_/-} linux-libc-dev-$ARCH-cross libgcc-12-dev-$ARCH-cross"
}

# Prints what the compiler is, for the name of what it has built. Of the kernel's headers the series
# counts (6.1): what it says to programs does not change in a series.
compiler_versions() {
  # shellcheck disable=SC2046 # a list of words
  dpkg-query -W -f '${Package} ${Version} ${Architecture}\n' $(compiler_packages) |
    sed -E 's/^(linux-libc-dev[^ ]* [0-9]+\.[0-9]+)[^ ]*/\1/'
  echo "musl $(musl_version) $ARCH"
}

musl_version() { dpkg-query -W -f '${Version}' musl-dev; }

# Makes $BUILD/compiler: the kernel's headers, and the specs by which gcc finds musl.
prepare_compiler() {
  local headers=/usr/include
  BUNDLE_COMPILER=$BUILD/compiler
  export BUNDLE_COMPILER
  mkdir -p "$BUNDLE_COMPILER/kernel-headers"
  if [ -z "$CROSS" ]; then
    ln -s "/usr/include/$GNU/asm" "$BUNDLE_COMPILER/kernel-headers/asm"
    ln -s "/usr/lib/$BUNDLE_TRIPLET/musl-gcc.specs" "$BUNDLE_COMPILER/musl.specs"
  else
    headers=/usr/$GNU/include
    ln -s "$headers/asm" "$BUNDLE_COMPILER/kernel-headers/asm"
    unpack_musl
  fi
  ln -s "$headers/linux" "$headers/asm-generic" "$BUNDLE_COMPILER/kernel-headers/"
}

# musl of another architecture, from Debian's package: it is not installed, only unpacked.
unpack_musl() {
  local folder package
  folder=$CACHE/downloads/musl-dev_$(musl_version)_$ARCH
  if [ ! -e "$folder/complete" ]; then
    say "downloading musl for $ARCH"
    BINARIES=$ARCH list_sources
    rm -rf "$folder"
    mkdir -p "$folder"
    # apt checks the file against the archive's signature
    (cd "$folder" && download "$folder/log" private_apt apt-get download "musl-dev:$ARCH=$(musl_version)") ||
      download_failed "musl-dev $(musl_version) for $ARCH" "$folder/log" "install this machine's newest musl-dev, so that both are the same"
    touch "$folder/complete"
  fi
  for package in "$folder"/*.deb; do
    dpkg-deb -x "$package" "$BUNDLE_COMPILER/musl"
  done
  sed -E "s#/usr/(include|lib)/$BUNDLE_TRIPLET#$BUNDLE_COMPILER/musl&#g" \
    "$BUNDLE_COMPILER/musl/usr/lib/$BUNDLE_TRIPLET/musl-gcc.specs" >"$BUNDLE_COMPILER/musl.specs"
}
