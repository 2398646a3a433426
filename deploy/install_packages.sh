#!/usr/bin/env bash
# Installs the Debian packages that are missing. Usage: deploy/install_packages.sh build|test|packages
#   build: what it takes to build and run Assay;  test: that and what its tests need;
#   packages: that and what making and testing Debian packages needs.
# Needs root or sudo only if something is missing.
set -euo pipefail

scope=${1:-build}
if [[ $# -gt 1 || ! $scope =~ ^(build|test|packages)$ ]]; then
  echo "error: \"$*\" is not one of build, test and packages; each installs what those before it do, too" >&2
  exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)

wanted=()
section=build
while read -r line; do
  case $line in
    '# build' | '# test' | '# packages') section=${line#\# } ;;
    '' | '#'*) ;;
    *)
      case $section:$scope in
        build:* | test:test | *:packages) wanted+=("$line") ;;
      esac
      ;;
  esac
done <"$here/packages.txt"

missing=()
for package in "${wanted[@]}"; do
  status=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $status == installed ]] || missing+=("$package")
done
if [[ ${#missing[@]} -eq 0 ]]; then
  echo "packages: all ${#wanted[@]} installed"
  exit 0
fi

echo "packages: installing ${#missing[@]} of ${#wanted[@]}: ${missing[*]}"
as_root=()
if [[ $(id -u) -ne 0 ]]; then
  command -v sudo >/dev/null || { echo "error: not root and no sudo; install: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
echo "packages: done"
