# shellcheck shell=bash
# OpenSSH as static programs, from Debian's source; read by build.sh.
#
# They need nothing of an image, not even its users (openssh/users.c), and are beside the bundle in the
# folder tools.

# The clients have a folder of their own, which stands first in the PATH of the job.
OPENSSH_SERVERS="sshd sftp-server"
OPENSSH_CLIENTS="ssh scp sftp ssh-keygen"

# Into $OPENSSH, from the cache where nothing changed.
prepare_openssh() {
  OPENSSH=$BUILD/tools-openssh-$({ locked_files openssh && cat "$HERE/openssh.sh" "$HERE"/openssh/*; } | sha256sum | cut -c1-16)
  [ -e "$OPENSSH/complete" ] || build_openssh
}

build_openssh() {
  local package version
  say "building OpenSSH"
  read -r package version < <(locked openssh)
  rm -rf "$OPENSSH" "${BUILD:?}/$package"
  mkdir -p "$OPENSSH"
  unpack_source "$package" "$version"
  (
    cd "$BUILD/$package"
    # Where strangers are answered, and where ssh finds the job's hosts, the running program decides;
    # one that may not become another user goes on without.
    sed -i 's|-D_PATH_PRIVSEP_CHROOT_DIR=.*|-D_PATH_PRIVSEP_CHROOT_DIR="pairun_empty_dir()"|' Makefile.in
    sed -i 's|^#define _PATH_HOST_CONFIG_FILE.*|#define _PATH_HOST_CONFIG_FILE pairun_ssh_config()|' pathnames.h
    sed -i 's/privsep_chroot = use_privsep && (/privsep_chroot = use_privsep \&\& pairun_may_drop() \&\& (/' sshd.c
    grep -q 'pairun_empty_dir' Makefile.in && grep -q 'pairun_ssh_config' pathnames.h && grep -q 'pairun_may_drop' sshd.c ||
      die "the changes do not apply to OpenSSH $version: see bundle/openssh.sh"
    # Debian's patches change what these are made from, for parts that are left out here.
    touch aclocal.m4 && touch configure config.h.in
    quietly "$CC" -O2 -fno-pie -fstack-protector-strong -Wall -I"$HERE/openssh" -c -o users.o "$HERE/openssh/users.c"
    quietly "$CC" -static -no-pie -O2 -fno-pie -fstack-protector-strong -Wall -Wl,--build-id=none \
      -o "$OPENSSH/ssh-session" "$HERE/openssh/session.c"
    # xauth is named, since a machine without it would compile in another path.
    quietly env CFLAGS="$LIBRARY_FLAGS -include $HERE/openssh/pairun.h" CPPFLAGS="-I$PREFIX/include" \
      LDFLAGS="-static -no-pie -L$PREFIX/lib -Wl,--gc-sections -Wl,--build-id=none" \
      ./configure --host="$BUNDLE_TRIPLET" --prefix=/usr --sysconfdir=/etc/ssh --with-privsep-user=sshd \
      --with-pid-dir=/run --with-ssl-dir="$PREFIX" --with-zlib="$PREFIX" --without-pam --without-selinux \
      --without-kerberos5 --without-libedit --without-shadow --without-pie --without-hardening \
      --without-security-key-builtin --disable-pkcs11 --disable-utmp --disable-utmpx \
      --disable-wtmp --disable-wtmpx --disable-lastlog --disable-libutil \
      --disable-pututline --disable-pututxline --with-sandbox=seccomp_filter \
      --with-xauth=/usr/bin/xauth
    # shellcheck disable=SC2086 # a list of words
    make_quietly $OPENSSH_SERVERS $OPENSSH_CLIENTS SSH_PROGRAM=ssh LIBS="$PWD/users.o -lcrypto -lz \
      -Wl,--wrap=getpwnam,--wrap=getpwuid,--wrap=initgroups,--wrap=setgroups,--wrap=connect,--wrap=accept"
    mkdir "$OPENSSH/ssh"
    # shellcheck disable=SC2086
    install -m 755 -t "$OPENSSH" $OPENSSH_SERVERS
    # shellcheck disable=SC2086
    install -m 755 -t "$OPENSSH/ssh" $OPENSSH_CLIENTS
    find "$OPENSSH" -type f -exec "$STRIP" --strip-all {} +
  )
  rm -rf "${BUILD:?}/$package"
  touch "$OPENSSH/complete"
}

install_openssh() {
  local name tools
  tools=$(dirname "$OUTPUT")/tools
  mkdir -p "$tools/ssh"
  (cd "$OPENSSH" && find . -type f ! -name complete) | while read -r name; do
    # A running program keeps its file: the new one takes its name.
    cp "$OPENSSH/$name" "$tools/$name.new"
    mv "$tools/$name.new" "$tools/$name"
  done
  say "$tools: $(locked openssh) in $(du -sh "$OPENSSH" | cut -f1)"
}
