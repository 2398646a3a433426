#!/usr/bin/env bash
# From a fresh Debian 12 machine to a scored benchmark: installs what is missing, builds the release
# preset into build/release/bin, and runs the quickstart on an embedded coordinator with two workers.
# Usage: deploy/quickstart.sh [arguments for `assay quickstart`]
set -euo pipefail
cd "$(dirname "$0")/.."

echo "== 1/3 packages"
deploy/install_packages.sh build
echo "== 2/3 build (build/release/bin; a few minutes the first time)"
cmake --workflow --preset release
echo "== 3/3 quickstart"
exec build/release/bin/assay quickstart "$@"
