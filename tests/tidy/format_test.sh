#!/usr/bin/env bash
# Fails if clang-format would change a file. Usage: format_test.sh CLANG_FORMAT
set -euo pipefail
if ! git ls-files '*.h' '*.cc' '*.cu' | xargs "$1" --dry-run --Werror; then
  echo "remedy: git ls-files '*.h' '*.cc' | xargs clang-format -i" >&2
  exit 1
fi
