#!/usr/bin/env bash
# Carries out the chapter "Install from packages" of /test/operator.md in this root, with looks in between.
set -euo pipefail
export PATH=/test/shims:$PATH HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
cd /root
ip link set lo up
echo '127.0.0.1 localhost bench.example.org w0' >/etc/hosts

fail() {
  journalctl --quiet --no-pager --lines 30 --unit assayd --unit assay-worker >&2
  echo "FAILED: $*" >&2
  exit 1
}

# The commands under a heading, in their order; there must be some.
chapter() { # HEADING
  echo "== $1"
  awk -v heading="### $1" '/^##/ { inside = $0 == heading }
    /^```/ { fenced = inside && $0 == "```sh"; next } fenced' /test/operator.md >"/tmp/$1"
  [[ -s /tmp/$1 ]] || fail "docs/operator.md has no commands under '### $1'"
  bash -euo pipefail -x "/tmp/$1" || fail "'### $1' of docs/operator.md"
}

expect_version() { # BEGINNING
  local version
  for package in assay assay-server assay-worker; do
    version=$(dpkg-query --show --showformat='${Version}' "$package")
    [[ $version == "$1"* ]] || fail "$package is $version, not $1"
  done
}

# What the units let daemons do, seen by what a run has left: it ended well, the agent has seen pages in memory, its
# ranks were of another account; and no daemon was restarted.
expect_first_run() {
  local unit
  assay score @last
  [[ $(assay entry show @last --json=state) == *valid* ]] || fail "the first entry is not valid"
  assay run show r-1 --caches
  assay run show r-1 --touch | tee /tmp/touch
  ! grep --word-regexp --regexp=W-TRAINER-ROOT --regexp=W-NO-RESIDENCY /tmp/touch ||
    fail "under its unit the agent is not what root is"
  for unit in assayd assay-worker; do
    systemctl is-active --quiet "$unit" || fail "$unit is not active"
    journalctl --quiet --unit "$unit" --priority warning
    [[ $(systemctl show --property NRestarts --value "$unit") == 0 ]] || fail "$unit was restarted"
  done
}

chapter "The coordinator"
chapter "Firewall"
chapter "The first worker"
expect_version 0.0.9
chapter "The first run"
expect_first_run
chapter "Certificates' life"
echo '# of this site' >>/etc/assay/assayd.textproto
sha256sum /etc/assay/* >/tmp/configuration

cp /srv/new/* /srv/assay
chapter "Upgrade"
expect_version 0.1
timeout 60 bash -c 'until assay node list >/dev/null 2>&1; do sleep 0.2; done' || fail "assayd does not come back"
sha256sum --check --quiet /tmp/configuration || fail "the upgrade has changed the configuration"
assay admin token list | grep alice || fail "the upgrade has lost a token"

echo "== the site comes and goes"
apt-get install --yes assay-web >/dev/null
assay-web --version
getent passwd assay-web >/dev/null || fail "assay-web has no account"
apt-get purge --yes assay-web >/dev/null

if compgen -G '/srv/assay/assay-worker-cuda_*' >/dev/null; then
  echo "== the plug-in for GPUs comes and goes, and trainers do without one"
  apt-get install --yes assay-worker-cuda >/dev/null
  [[ -e /usr/lib/assay/libassay_cuda.so ]] || fail "no plug-in where assay-train looks for it"
  assay-train --backends | grep onednn || fail "assay-train offers nothing"
  apt-get purge --yes assay-worker-cuda >/dev/null
fi

echo "== quickstart of somebody"
useradd --create-home somebody
runuser -u somebody -- env HOME=/home/somebody assay quickstart || fail "assay quickstart"
man_pages=$(find /usr/share/man -name 'assay*' | wc -l)
((man_pages > 50)) || fail "$man_pages man pages"

chapter "Roll back"
expect_version 0.0.9
chapter "Remove"
[[ -s /etc/assay/assayd.textproto && -s /var/lib/assay/assay.db ]] || fail "remove took what it should leave"
[[ -z $(find /usr/bin -name 'assay*') ]] || fail "remove left programs"
chapter "Purge"
# What has our name, but evidence, and what is the operator's own or this test's.
left=$(find / -xdev \( -path /srv -o -path /test -o -path /tmp -o -path /home -o -path /var/lib/assay \
  -o -path /var/lib/apt/lists -o -path /etc/apt \) -prune -o -name '*assay*' -print)
[[ -z $left ]] || fail "purge left: $left"
[[ -s /var/lib/assay/assay.db ]] || fail "purge took evidence"
echo "== packages: passed"
