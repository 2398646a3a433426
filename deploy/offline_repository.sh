#!/usr/bin/env bash
# Makes a folder an apt repository from which a site without network installs Assay.
# Usage: deploy/offline_repository.sh PACKAGES DIR
#   PACKAGES  folder with our packages; DIR gets them, all that they need or recommend of this machine's
#             Debian, to the last library, and the index that apt reads
# On the other side: echo 'deb [trusted=yes] file:DIR ./' >/etc/apt/sources.list.d/assay.list; apt-get update
set -euo pipefail

packages=$(realpath "$1")
mkdir -p "$2"
directory=$(realpath "$2")

lists=$(mktemp --directory)
trap 'rm -rf "$lists"' EXIT
mkdir "$lists/partial"
: >"$lists/status"

# The plug-in's other libraries are NVIDIA's, and nobody needs it to install the rest.
wanted=()
for package in "$packages"/*.deb; do
  case $package in
    *-cuda_*) ;;
    *) wanted+=("$package") ;;
  esac
done

# As if nothing were installed: what the other machine has, nobody knows.
apt-get install --yes --download-only --no-install-recommends \
  -o Dir::State::status="$lists/status" -o Dir::Cache::archives="$lists" -o Debug::NoLocking=1 \
  -o APT::Sandbox::User=root -o APT::Get::AllowUnauthenticated=false -o Dir::Cache::pkgcache= \
  "${wanted[@]}" bubblewrap squashfs-tools gnuplot-nox fonts-dejavu-core >"$lists/log" ||
  { tail -20 "$lists/log" >&2; exit 1; }
cp "$lists"/*.deb "$packages"/*.deb "$directory"
cd "$directory"
dpkg-scanpackages --multiversion . >Packages 2>"$lists/log"
echo "$directory: $(find . -name '*.deb' | wc -l) packages, $(du -sh . | cut -f1)"
