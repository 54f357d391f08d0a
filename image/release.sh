#!/bin/bash
# Writes the files of a release: the same commit gives the same bytes.
#
# usage: image/release.sh FOLDER      (as root, on Debian 12; `make release` sets PYTHON, PLATFORMS, IMAGE_OPTIONS)
#
# pairun-VERSION-py3-none-any.whl, pairun-VERSION.tar.gz   the command, and its source
# pairun-VERSION-image.tar                                 the image for every platform (OCI archive)
# pairun-VERSION-site.tar                                  the documentation
# pairun-VERSION.cdx.json                                  what the images contain (CycloneDX 1.5)
# SHA256SUMS                                               the digests of these files
set -euo pipefail

[ $# = 1 ] || { sed -n '2,11s/^# \{0,1\}//p' "$0" && exit 2; }
OUTPUT=$(realpath -m "$1")
ROOT=$(cd "$(dirname "$0")/.." && pwd)
PYTHON=${PYTHON:?an interpreter with hatchling}
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-1700000000} LC_ALL=C TZ=UTC
umask 022
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
cd "$ROOT"

archive() { # archive FOLDER FILE
  tar --sort=name --format=ustar --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -C "$1" -cf "$2" .
}

rm -rf "$OUTPUT"
mkdir -p "$OUTPUT"
"$PYTHON" -m hatchling build -t wheel -t sdist -d "$OUTPUT"
VERSION=$(basename "$OUTPUT"/*.tar.gz .tar.gz)
VERSION=${VERSION#pairun-}
NAME=$OUTPUT/pairun-$VERSION

image=localhost/pairun-release:$VERSION
buildah manifest rm "$image" >/dev/null 2>&1 || true
make image IMAGE="$image" IMAGE_OPTIONS="${IMAGE_OPTIONS:-} --build-arg VERSION=$VERSION \
  --build-arg REVISION=$(git rev-parse HEAD)"
buildah manifest push --quiet --all "$image" "oci:$WORK/image:$VERSION"
archive "$WORK/image" "$NAME-image.tar"

for platform in ${PLATFORMS//,/ }; do
  container=$(buildah from --pull-never --platform "$platform" "$image")
  cp "$(buildah mount "$container")/opt/pairun/sbom.cdx.json" "$WORK/${platform//\//-}.cdx.json"
  buildah rm "$container" >/dev/null
done
"$PYTHON" "$ROOT/image/materials.py" --merge "$WORK"/*.cdx.json >"$NAME.cdx.json"

make docs SITE="$WORK/site"
archive "$WORK/site" "$NAME-site.tar"

(cd "$OUTPUT" && sha256sum -- * >"$WORK/sums" && mv "$WORK/sums" SHA256SUMS)
ls -l "$OUTPUT" >&2
