#!/usr/bin/env bash
# Mounts what programs expect in ROOT and runs /test/in_root.sh there. Usage, in namespaces of mounts and
# processes that end with it: enter_root.sh ROOT
set -euo pipefail
root=$1

mount --make-rprivate /
mount --types proc proc "$root/proc"
mount --types tmpfs tmpfs "$root/dev"
for device in null zero random urandom tty fuse; do
  [[ -e /dev/$device ]] || continue
  touch "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
ln -s /proc/self/fd "$root/dev/fd"
mkdir "$root/dev/shm"
mount --types tmpfs tmpfs "$root/dev/shm"
mount --types tmpfs tmpfs "$root/run"
exec chroot "$root" /test/in_root.sh
