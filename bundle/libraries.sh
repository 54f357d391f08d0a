# shellcheck shell=bash
# The static libraries, each from Debian's source into $PREFIX; read by build.sh.
# No debugging symbols, one section for each function: the linker leaves out what nothing calls.

LIBRARY_FLAGS="-O2 -fno-pie -fstack-protector-strong -ffunction-sections -fdata-sections"

build_libraries() {
  build_zlib
  build_bzip2
  build_xz
  build_openssl
}

build_zlib() (
  say "building zlib"
  cd "$BUILD/zlib"
  CFLAGS=$LIBRARY_FLAGS quietly ./configure --static --prefix="$PREFIX"
  make_quietly libz.a
  install -D -m 644 -t "$PREFIX/lib" libz.a
  install -D -m 644 -t "$PREFIX/include" zlib.h zconf.h
)

build_bzip2() (
  say "building bzip2"
  cd "$BUILD/bzip2"
  make_quietly libbz2.a CC="$CC" AR="$AR" RANLIB="$RANLIB" CFLAGS="$LIBRARY_FLAGS -D_FILE_OFFSET_BITS=64"
  install -D -m 644 -t "$PREFIX/lib" libbz2.a
  install -D -m 644 -t "$PREFIX/include" bzlib.h
)

build_xz() (
  say "building liblzma"
  cd "$BUILD/xz-utils"
  CFLAGS=$LIBRARY_FLAGS quietly ./configure --host="$BUNDLE_TRIPLET" --prefix="$PREFIX" --disable-shared \
    --disable-xz --disable-xzdec --disable-lzmadec --disable-lzmainfo --disable-lzma-links \
    --disable-scripts --disable-doc --disable-nls
  make_quietly -C src/liblzma install
)

build_openssl() (
  say "building OpenSSL"
  cd "$BUILD/openssl"
  # no-autoload-config: an openssl.cnf of the user's image was written for another OpenSSL.
  # no-dso, no-engine, no-module: nothing can be loaded into a static program.
  # The rest are ciphers and protocols that no server asks for, and that cost size.
  CFLAGS=$LIBRARY_FLAGS quietly ./Configure "$OPENSSL_TARGET" --prefix=/usr --libdir=lib \
    --openssldir=/etc/ssl no-shared no-tests no-engine no-async no-dso no-module no-afalgeng \
    no-legacy no-autoload-config no-ssl3 no-srp no-dtls1 no-idea no-seed no-rc2 no-rc4 no-rc5 \
    no-mdc2 no-whirlpool no-bf no-cast no-camellia no-aria no-gost no-cmp no-ct no-ts
  make_quietly build_libs
  # installed by hand: --prefix stands in the library, and must not be a path of this machine
  make_quietly install_dev DESTDIR="$BUILD/openssl/installed"
  cp -r installed/usr/include installed/usr/lib "$PREFIX/"
)
