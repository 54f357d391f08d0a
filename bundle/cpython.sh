# shellcheck shell=bash
# CPython as a static library, with every C extension that it keeps built in; read by build.sh.

# C extensions left out: what needs a library that is not here (tkinter, sqlite3, readline, curses,
# dbm, ctypes, expat, crypt, nis, uuid), CJK codecs for their size, and CPython's own tests.
LEFT_OUT="_bz2 _codecs_cn _codecs_hk _codecs_iso2022 _codecs_jp _codecs_kr _codecs_tw _crypt _ctypes
_ctypes_test _curses _curses_panel _dbm _elementtree _gdbm _multibytecodec _multiprocessing
_posixshmem _sqlite3 _testbuffer _testcapi _testclinic _testimportmultiple _testinternalcapi
_testmultiphase _tkinter _uuid _xxsubinterpreters _xxtestfuzz audioop nis ossaudiodev pyexpat
readline spwd xxlimited xxlimited_35 xxsubtype"

build_cpython() (
  local name cross=()
  say "building CPython for $ARCH"
  cd "$BUILD/python3.11"
  # what configure would find out by running a program, or look for on this machine
  export ac_cv_file__dev_ptmx=yes ac_cv_file__dev_ptc=no ac_cv_buggy_getaddrinfo=no
  export ac_cv_aligned_required=no ac_cv_broken_sem_getvalue=no ac_cv_computed_gotos=yes
  export ac_cv_working_tzset=yes ac_cv_pthread_system_supported=yes
  export ac_cv_working_openssl_ssl=yes ac_cv_working_openssl_hashlib=yes
  export PKG_CONFIG_LIBDIR=$PREFIX/lib/pkgconfig
  export CPPFLAGS="-I$PREFIX/include" LDFLAGS="-static -L$PREFIX/lib" LINKFORSHARED=" "
  export MODULE_BUILDTYPE=static
  # Debian's configure takes the name of the C library from --build.
  [ -z "$CROSS" ] || cross=(--build="$(uname -m)-pc-linux-musl" --host="$BUNDLE_TRIPLET" --with-build-python="$STATIC_PYTHON")
  quietly ./configure "${cross[@]}" --prefix=/bundle --disable-shared --disable-test-modules --without-ensurepip \
    --without-doc-strings --with-openssl="$PREFIX" \
    CFLAGS="-g0 -fno-pie -fstack-protector-strong -ffunction-sections -fdata-sections -fno-semantic-interposition"
  # Modules/Setup.stdlib is what configure found; a line here must not contain "=".
  cp Modules/Setup.stdlib Modules/Setup.local
  for name in $LEFT_OUT; do
    sed -i "s/^$name /#&/; s/^$name\$/#&/" Modules/Setup.local
  done
  sed -i 's/^_lzma .*/#&/; s/^zlib .*/#&/; s/^binascii .*/#&/' Modules/Setup.local
  cat >>Modules/Setup.local <<END
*static*
_bz2 _bz2module.c -lbz2
_lzma _lzmamodule.c -llzma
zlib zlibmodule.c -lz
binascii binascii.c -DUSE_ZLIB_CRC32 -lz
END
  make_quietly python
)
