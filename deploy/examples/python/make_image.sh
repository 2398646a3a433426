#!/usr/bin/env bash
# Makes an image for the programs of this folder: a small Debian 12 with Python, numpy and mlperf-logging, in one squashfs
# file. Usage, as root:  make_image.sh IMAGE.sqsh
#   PYTHON  one with pip, which fetches mlperf-logging (default: python3)
# Packages: mmdebstrap squashfs-tools. Takes about a minute.
set -euo pipefail

image=$(readlink -m "${1:?usage: make_image.sh IMAGE.sqsh}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root

mmdebstrap --quiet --variant=essential --include=python3-minimal,python3-numpy --skip=check/empty bookworm "$work/root.tar"
mkdir "$root"
tar --directory "$root" --extract --file "$work/root.tar" --exclude='./dev/*'
"${PYTHON:-python3}" -m pip install --quiet --no-deps --target "$root/usr/local/lib/python3.11/dist-packages" mlperf-logging
mksquashfs "$root" "$image" -quiet -noappend -no-progress -all-time 0 -mkfs-time 0 >/dev/null
sha256sum "$image"
