#!/usr/bin/env bash
# The packages in a clean Debian 12 without network: install, quickstart, upgrade, roll back, remove, purge.
# Usage, as root, with build/release built: packages_test.sh      (tests/run.sh packages calls it)
# The commands are those of docs/operator.md ("Install from packages"), in their order. A systemd of its own runs in
# the root, so the units are what starts, with all that they forbid; shims/scp copies.
set -euo pipefail
cd "$(dirname "$0")/../.."

work=$(mktemp --directory)
trap 'rm -rf --one-file-system "$work"' EXIT
root=$work/root

echo "== packages of two versions, and all that they need, in one folder"
deploy/package.sh --no-build --version 0.0.9 --offline "$work/old"
deploy/package.sh --no-build
lintian --allow-root --fail-on error,warning build/packages/*.deb
cp -r "$work/old" "$work/new"
cp build/packages/*.deb "$work/new"
(cd "$work/new" && dpkg-scanpackages --multiversion . >Packages 2>/dev/null)

echo "== a clean Debian 12"
mmdebstrap --quiet --variant=apt --include=dbus,iproute2,nftables,openssl,systemd,systemd-sysv bookworm "$work/root.tar"
mkdir "$root"
tar --directory "$root" --extract --file "$work/root.tar" --exclude='./dev/*'
: >"$root/etc/apt/sources.list"
mkdir -p "$root/srv" "$root/test"
cp -r "$work/new" "$work/image"
mv "$work/old" "$root/srv/assay"
mv "$work/new" "$root/srv/new"
cp -r tests/packages/. docs/operator.md "$root/test"

# A network of its own: only the folder can have given what is installed.
tests/packages/boot_root.sh "$root"

tests/packages/container_test.sh "$work/root.tar" "$work/image"
