#!/usr/bin/env bash
# Installs what the tests need, builds everything and runs all tests of one preset.
# Usage: tests/run.sh [preset]     presets: dev (default), clang, asan, tsan, coverage, fuzz, and
#   attack: a minute of each attack that dev makes for seconds (tests/attack), in dev's build
#   packages: as root, the Debian packages in a clean root, by the commands of docs/operator.md (tests/packages)
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-dev}

begin=0
times=""
took() { # WHAT: since the last call
  times+="$1 $((SECONDS - begin)) s, "
  begin=$SECONDS
}

echo "== 1/3 packages"
scope="test"
[[ $preset != packages ]] || scope=packages
deploy/install_packages.sh "$scope"
took packages
echo "== 2/3 release build (build/release/bin: what is installed)"
cmake --workflow --preset release
took "release build"
if [[ $preset == packages ]]; then
  echo "== 3/3 packages, installed, upgraded and removed"
  exec tests/packages/packages_test.sh
fi
echo "== 3/3 build and test, preset $preset"
status=0
cmake --workflow --preset "$preset" || status=$?
took "preset $preset"

log=build/$preset/Testing/Temporary/LastTest.log
[[ $preset != attack ]] || log=build/dev/Testing/Temporary/LastTest.log
if ((status != 0)) && [[ -f $log ]]; then
  echo "== what failed (all of it: $log):"
  grep --no-group-separator -A8 -E ': Failure$|^\[  FAILED  \]|Test Failed|Test timeout|Timeout' "$log" | head -120 | sed 's/^/  /' || true
fi

# A test that skips itself says why; the reasons are repeated here, where they are read.
if [[ -f $log ]] && grep -q ': Skipped$' "$log"; then
  echo "== skipped, so not tested here:"
  grep --no-group-separator -A1 ': Skipped$' "$log" | grep -v ': Skipped$' | sort -u | sed 's/^/  /'
fi
echo "== times: ${times}all $SECONDS s"
exit "$status"
