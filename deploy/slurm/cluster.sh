#!/usr/bin/env bash
# A Slurm of three nodes on this machine, for trying things out: munge, slurmctld and three slurmd on
# loopback, all their files in one folder. Needs root, Debian's slurmctld, slurmd, slurm-client and
# munge, and ports 26817 to 26820.
# Usage: deploy/slurm/cluster.sh start DIR     then: export SLURM_CONF=DIR/slurm.conf
#        deploy/slurm/cluster.sh stop DIR
set -euo pipefail

readonly first_port=26817
readonly nodes=3

usage() { sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[[ $# -eq 2 ]] || usage
action=$1
mkdir -p "$2"
dir=$(cd "$2" && pwd) # slurmd hangs on relative paths

write_configuration() {
  local host i
  host=$(hostname -s)
  cat >"$dir/slurm.conf" <<END
ClusterName=assaydemo
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$first_port
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge.sock
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool-%n
TmpFS=$dir/tmp-%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd-%n.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=1,bf_interval=2
PartitionName=main Nodes=n[0-$((nodes - 1))] OverSubscribe=EXCLUSIVE MaxTime=1-0 State=UP Default=YES
END
  for ((i = 0; i < nodes; ++i)); do
    mkdir -p "$dir/tmp-n$i"
    echo "NodeName=n$i NodeHostname=$host NodeAddr=127.0.0.1 Port=$((first_port + 1 + i))" \
      "CPUs=$(nproc) RealMemory=1000" >>"$dir/slurm.conf"
  done
  echo "CgroupPlugin=autodetect" >"$dir/cgroup.conf"
  mkdir -p "$dir/state"
  install -d -m 0700 "$dir/munge"
  (umask 077 && head -c 1024 /dev/urandom >"$dir/munge/key")
}

start() {
  local i
  for program in munged slurmctld slurmd sinfo; do
    PATH=$PATH:/usr/sbin command -v "$program" >/dev/null && continue
    echo "error: $program is missing: apt-get install slurmctld slurmd slurm-client munge" >&2
    exit 1
  done
  for ((i = 0; i <= nodes; ++i)); do
    (exec 3<>"/dev/tcp/127.0.0.1/$((first_port + i))") 2>/dev/null || continue
    echo "error: port $((first_port + i)) is taken: stop the other Slurm of this machine first" \
      "(deploy/slurm/cluster.sh stop DIR)" >&2
    exit 1
  done
  write_configuration
  /usr/sbin/munged --force --socket="$dir/munge.sock" --key-file="$dir/munge/key" \
    --pid-file="$dir/munged.pid" --log-file="$dir/munge/log" --seed-file="$dir/munge/seed" \
    --num-threads=2
  /usr/sbin/slurmctld -f "$dir/slurm.conf"
  for ((i = 0; i < nodes; ++i)); do
    /usr/sbin/slurmd -N "n$i" -f "$dir/slurm.conf"
  done
  export SLURM_CONF=$dir/slurm.conf
  for ((i = 0; i < 200; ++i)); do
    [[ $(sinfo --noheader --Node --format=%T 2>/dev/null | grep -c '^idle$') -eq $nodes ]] && return
    sleep 0.1
  done
  echo "error: the nodes do not become idle; see $dir/slurmctld.log:" >&2
  tail -5 "$dir/slurmctld.log" >&2
  exit 1
}

# Jobs first: daemons leave them behind. Returns when all have ended.
stop() {
  local file i pid
  SLURM_CONF=$dir/slurm.conf scancel --user=root 2>/dev/null || true
  for file in "$dir"/slurmd-n*.pid "$dir/slurmctld.pid" "$dir/munged.pid"; do
    [[ -s $file ]] || continue
    pid=$(<"$file")
    kill "$pid" 2>/dev/null || continue
    for ((i = 0; i < 100; ++i)); do
      grep -q '^State:[[:space:]]*[^Z[:space:]]' "/proc/$pid/status" 2>/dev/null || break
      sleep 0.1
    done
  done
}

case $action in
  start) start ;;
  stop) stop ;;
  *) usage ;;
esac
