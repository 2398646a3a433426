#!/usr/bin/env bash
# Line coverage of the parts that must be right: rules, core, store. Usage: deploy/ci/coverage.sh [minimum %]
# Builds the coverage preset, runs its unit tests, prints a table, and fails below the minimum (default 90).
set -euo pipefail
cd "$(dirname "$0")/../.."
minimum=${1:-90}

cmake --preset coverage >/dev/null
tests=(rules_test server_core_test server_store_test server_runtime_test sim_test)
cmake --build --preset coverage --target "${tests[@]}"
find build/coverage -name '*.gcda' -delete
ASSAY_SIM_COUNT=200 ctest --test-dir build/coverage --output-on-failure \
  --tests-regex "^($(IFS='|' && echo "${tests[*]}"))\$"
for folder in common/rules server/core server/store; do
  echo "== $folder"
  gcovr --root . --object-directory build/coverage --filter "$folder/" --exclude-throw-branches \
    --fail-under-line "$minimum" --print-summary "build/coverage/$folder"
done
