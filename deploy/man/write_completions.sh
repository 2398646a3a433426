#!/usr/bin/env bash
# Writes the completions of all shells. Usage: write_completions.sh ASSAY SHARE
#   ASSAY: the program; SHARE: share/ of the tree, in which each shell has its own folder
set -euo pipefail

assay=$1
share=$2

write() { # SHELL FILE
  mkdir -p "$(dirname "$share/$2")"
  "$assay" completion "$1" >"$share/$2"
}

write bash bash-completion/completions/assay
write zsh zsh/vendor-completions/_assay
write fish fish/vendor_completions.d/assay.fish
