#!/usr/bin/env bash
# Somebody else's program on a Slurm, from nothing to an accepted package, on one machine: starts a
# Slurm of three nodes and a coordinator that submits jobs to it, runs the PyTorch example of
# deploy/examples on two nodes as often as the round asks, and lets the official checker judge what
# is exported. Needs root (slurmd does) and Debian 12.
# Usage: deploy/slurm-demo.sh [DIR, default a new folder]   everything made stays in DIR.
set -euo pipefail
repository=$(cd "$(dirname "$0")/.." && pwd)

case ${1:-} in
  -h | --help) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
  -*) echo "error: no option $1; see $0 --help" >&2; exit 2 ;;
esac
[[ $(id -u) -eq 0 ]] || { echo "error: only root may start slurmd; use sudo" >&2; exit 1; }
dir=${1:-$(mktemp -d /tmp/assay-slurm.XXXXXX)}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
[[ -z $(ls -A "$dir") ]] || { echo "error: $dir is not empty; name a new folder" >&2; exit 1; }
bin=$repository/build/release/bin
export SLURM_CONF=$dir/slurm/slurm.conf
export ASSAY_SOCKET=$dir/assayd.sock
export PATH=$bin:$PATH

step() { echo "== $1"; }

clean_up() {
  local code=$?
  if [[ -n ${daemon:-} ]]; then
    kill "$daemon" 2>/dev/null || true
    wait "$daemon" || true
  fi
  "$repository/deploy/slurm/cluster.sh" stop "$dir/slurm"
  [[ $code -eq 0 ]] || echo "error: the demonstration failed; its files and logs are in $dir" >&2
}

step "1/6 packages (Debian's, with Slurm and PyTorch; the MLPerf logger and checker from PyPI)"
"$repository/deploy/install_packages.sh" test
readonly mlperf=mlperf-logging==4.1.68
/usr/bin/python3 -m venv --system-site-packages "$dir/program" # sees Debian's PyTorch
"$dir/program/bin/pip" install --quiet --disable-pip-version-check --no-deps "$mlperf"
/usr/bin/python3 -m venv "$dir/checker"
"$dir/checker/bin/pip" install --quiet --disable-pip-version-check "$mlperf" numpy==2.4.6 \
  pandas==3.1.1 PyYAML==6.0.3 scipy==1.17.1

step "2/6 build (build/release/bin; a few minutes the first time)"
cmake --workflow --preset release

step "3/6 Slurm, its files in $dir/slurm"
trap clean_up EXIT
"$repository/deploy/slurm/cluster.sh" start "$dir/slurm"
sinfo

step "4/6 coordinator, its files in $dir/etc and $dir/data"
readonly port=27443
assay admin init "$dir/etc" --host 127.0.0.1 --port "$port" --data "$dir/data" \
  --unix-socket "$ASSAY_SOCKET" >/dev/null
cat >"$dir/launcher" <<END
launcher {
  kind: "slurm"
  slurm {
    shared_directory: "$dir/jobs"
    server_address: "127.0.0.1:$port"
    poll_interval_s: 1
    worker {
      rendezvous_host: "127.0.0.1" run_user: "root" core_count: 1 data_directory: "$dir/nodes"
      isolation: NAMESPACES software_directories: "$dir/program"
    }
  }
}
END
sed -i -e 's/0\.0\.0\.0:/127.0.0.1:/' -e "/launcher { kind: \"attach\" }/{
r $dir/launcher
d
}" "$dir/etc/assayd.textproto"
assayd --config="$dir/etc/assayd.textproto" >"$dir/assayd.log" 2>&1 &
daemon=$!
for ((i = 0; i < 100; ++i)); do
  assay status >/dev/null 2>&1 && break
  kill -0 "$daemon" || { tail -5 "$dir/assayd.log" >&2; exit 1; }
  sleep 0.1
done

step "5/6 entry: PyTorch under torchrun on two nodes of a job"
cp -r "$repository/deploy/examples/python" "$dir/entry"
sed -i "s|\"python3\"|\"$dir/program/bin/python3\"|" "$dir/entry/cosmoflow-pytorch.toml"
assay dataset generate "$dir/beacons" --mode beacon --train 256 --eval 64
assay dataset add beacons "$dir/beacons"
assay submit "$dir/entry/cosmoflow-pytorch.toml" --wait
assay score @last
assay set show @last

step "6/6 package, judged by Assay and by the official checker"
assay entry export @last "$dir/package"
organization=("$dir"/package/*)
assay package check --round hpc-3.0.0 "${organization[0]}"
"$dir/checker/bin/python3" -m mlperf_logging.package_checker "${organization[0]}" hpc 3.0.0 \
  --log_output "$dir/package_checker.log" 2>&1 | tail -3
grep -q "PACKAGE CHECKER FOUND NO ERRORS, SUCCESS" "$dir/package_checker.log" ||
  { echo "error: the official checker says more in $dir/package_checker.log" >&2; exit 1; }
echo "all of it is in $dir"
