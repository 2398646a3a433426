#!/usr/bin/env bash
# Runs clang-tidy over our sources as the clang preset compiles them. Usage: deploy/ci/tidy.sh [FILE...]
# Without files: all that git tracks. Needs build/clang/compile_commands.json.
set -euo pipefail
cd "$(dirname "$0")/../.."

files=("$@")
if [[ ${#files[@]} -eq 0 ]]; then
  mapfile -t files < <(git ls-files '*.cc')
fi
printf '%s\0' "${files[@]}" |
  xargs -0 --max-procs="$(nproc)" --max-args=1 clang-tidy -p build/clang --quiet
