#!/usr/bin/env bash
# The systemd units keep their protection: usage units_test.sh DIRECTORY. Each unit has the lines that matter
# most; where systemd-analyze is installed, its exposure is at most what was reached (in tenths).
set -euo pipefail

directory=$1
failures=0

fail() {
  echo "$1" >&2
  failures=$((failures + 1))
}

# Lines that all units have.
common=(
  'NoNewPrivileges=yes' 'UMask=0077' 'ProtectSystem=strict' 'PrivateTmp=yes'
  'ProtectKernelModules=yes' 'RestrictNamespaces=yes' 'RestrictSUIDSGID=yes' 'LockPersonality=yes'
  'SystemCallArchitectures=native' 'LimitCORE=0'
)

check() {
  local unit=$directory/$1 exposure_max=$2
  shift 2
  local line
  for line in "${common[@]}" "$@"; do
    grep --quiet --line-regexp --fixed-strings -- "$line" "$unit" || fail "$unit lacks the line $line"
  done
  for line in CapabilityBoundingSet= SystemCallFilter=@system-service RestrictAddressFamilies=; do
    grep --quiet -- "^$line" "$unit" || fail "$unit lacks a line $line"
  done
  if command -v systemd-analyze > /dev/null; then
    systemd-analyze security --offline=yes --threshold="$exposure_max" --no-pager "$unit" > /dev/null ||
      fail "$unit is more exposed than $exposure_max tenths: systemd-analyze security --offline=yes $unit"
  else
    echo "systemd-analyze is not installed: exposure not judged"
  fi
}

check assay-privileged.service 25 'MemoryDenyWriteExecute=yes' 'PrivateDevices=yes' 'PrivateNetwork=yes' 'StateDirectoryMode=0700'
check assayd.service 20 'User=assay' 'StateDirectoryMode=0700' 'MemoryDenyWriteExecute=yes' 'PrivateDevices=yes'
# Root, for fanotify, drop_caches and the account of ranks.
check assay-worker.service 40 'KillMode=process' 'StateDirectoryMode=0700'
check assay-web.service 20 'User=assay-web' 'MemoryDenyWriteExecute=yes' 'PrivateDevices=yes'

exit "$((failures > 0))"
