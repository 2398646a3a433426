#!/usr/bin/env bash
# deploy/Containerfile makes an image whose coordinator serves. Usage, as root: container_test.sh ROOT.tar FOLDER
#   ROOT.tar  a clean Debian 12; FOLDER  what deploy/package.sh --offline made
# By buildah without an OCI runtime (--isolation chroot), which works where control groups do not; so what
# podman itself does at "run" is not seen here.
set -euo pipefail
cd "$(dirname "$0")/../.."

work=$(mktemp --directory)
daemon=""
finish() {
  [[ -z $daemon ]] || { kill -- "-$daemon" && wait "$daemon"; } 2>/dev/null || true
  buildah rm --all >/dev/null || true
  rm -rf --one-file-system "$work"
}
trap finish EXIT
buildah() { command buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs "$@"; }
fail() { echo "FAILED: $*" >&2; exit 1; }

echo "== image"
base=$(buildah from scratch)
buildah add --quiet "$base" "$1" / >/dev/null
buildah commit --quiet "$base" localhost/debian12 >/dev/null
buildah build --quiet --isolation chroot --network host --build-arg BASE=localhost/debian12 \
  --file deploy/Containerfile --tag localhost/assay "$2" >"$work/log" || fail "build: $(tail -5 "$work/log")"

echo "== coordinator in it"
container=$(buildah from localhost/assay)
mkdir "$work/etc"
inside() { buildah run --isolation chroot --network host --volume "$work/etc:/etc/assay" "$@"; }
# Any free port: 0 is one that the kernel chooses, and the log says which.
inside --user root "$container" -- assay admin init /etc/assay --host bench.example.org --port 0
set -m
inside "$container" -- assayd --config=/etc/assay/assayd.textproto >"$work/log" 2>&1 &
daemon=$!
timeout 60 bash -c "until grep --quiet ' serving ' '$work/log'; do sleep 0.2; done" || fail "$(tail -5 "$work/log")"
port=$(sed -n 's/.* serving tcp=[^ ]*:\([0-9]*\) .*/\1/p' "$work/log")
[[ $(curl --silent --insecure "https://127.0.0.1:$port/healthz") == ok* ]] || fail "no answer at $port"
inside --user root "$container" -- assay node list
echo "== container: passed"
