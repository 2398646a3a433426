#!/usr/bin/env bash
# Boots ROOT under systemd, without network, and runs /test/in_root.sh there. Usage, as root: boot_root.sh ROOT
# systemd-nspawn makes the container; what it takes from containers and nodes have is given back: the agent resets
# caches and watches files as root does.
set -euo pipefail
root=$1

export SYSTEMD_NSPAWN_API_VFS_WRITABLE=yes
# A host with control groups of version 1 gives the container the same.
[[ $(stat --file-system --format=%T /sys/fs/cgroup) == cgroup2fs ]] || export SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=0
systemd-nspawn --quiet --directory "$root" --boot --register=no --keep-unit --private-network --console=pipe \
  --capability=all --system-call-filter=@known >"$root.boot" 2>&1 </dev/null &
container=$!
init=""
finish() { kill -KILL ${init:+"$init"} "$container" 2>/dev/null || true; }
trap finish EXIT

inside() { nsenter --target "$init" --all "$@"; }
for ((tries = 0; tries < 300; ++tries)); do
  init=$(pgrep --parent "$container" | head -1) || true
  [[ -z $init || $(inside systemctl is-system-running 2>/dev/null || true) != running ]] || break
  kill -0 "$container" 2>/dev/null || { cat "$root.boot" >&2; exit 1; }
  sleep 0.1
done
inside systemctl is-system-running || { inside systemctl --failed; tail "$root.boot"; exit 1; } >&2
inside /test/in_root.sh
