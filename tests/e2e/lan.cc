#include "tests/e2e/lan.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

#include "common/file.h"
#include "common/process.h"

namespace assay::testing {

std::string Lan::Obstacle(bool* is_of_kernel) {
  for (const char* program : {"/usr/sbin/ip", "/usr/sbin/tc", "/usr/sbin/nft"})
    if (!FileExists(program))
      return absl::StrCat(program, " is missing (apt-get install iproute2 nftables)");
  *is_of_kernel = true;
  const std::string name = absl::StrCat("as", getpid() % 100'000, "try");
  for (const char* verb : {"add", "del"}) {
    const absl::StatusOr<ProcessId> process =
        Spawn({.argv = {"/usr/sbin/ip", "netns", verb, name}, .output_path = "/dev/null"});
    const absl::StatusOr<int> code =
        process.ok() ? WaitForExit(*process, absl::Minutes(1)) : process.status();
    if (!code.ok() || *code != 0) return "no network namespace can be made here";
  }
  return "";
}

// An interface's name has at most 15 letters.
Lan::Lan(const Site* site, int node_count)
    : site_(*site), id_(absl::StrCat("as", getpid() % 100'000)), node_count_(node_count) {
  Do(absl::StrCat("ip netns add ", id_, "sw && ip -n ", id_,
                  "sw link add switch type bridge && ip -n ", id_, "sw link set switch up"));
  Do(absl::StrCat("ip link add ", id_, "h type veth peer name host netns ", id_, "sw && ip -n ",
                  id_, "sw link set host master switch up && ip addr add ", host_address(),
                  "/24 dev ", id_, "h && ip link set ", id_, "h up"));
  for (int node = 0; node < node_count_; ++node) {
    const std::string name = Name(node);
    Do(absl::StrCat("ip netns add ", name, " && ip link add eth0 netns ", name,
                    " type veth peer name n", node, " netns ", id_, "sw && ip -n ", id_,
                    "sw link set n", node, " master switch up"));
    Do(absl::StrCat("ip -n ", name, " addr add ", node_address(node), "/24 dev eth0 && ip -n ",
                    name, " link set eth0 up && ip -n ", name, " link set lo up"));
    Mend(node);
  }
}

Lan::~Lan() {
  for (int node = 0; node < node_count_; ++node)
    Do(absl::StrCat("ip netns del ", Name(node)));
  Do(absl::StrCat("ip link del ", id_, "h && ip netns del ", id_, "sw"));
}

std::vector<std::string> Lan::OnNode(int node) const {
  return {"/usr/bin/nsenter", absl::StrCat("--net=/run/netns/", Name(node)), "--"};
}

void Lan::Lose(int node, const std::string& address, int percent) const {
  AddRule(node, "received", absl::StrCat("ip saddr ", address), percent);
}

void Lan::LoseSent(int node, const std::string& address, int percent) const {
  AddRule(node, "sent", absl::StrCat("ip daddr ", address), percent);
}

void Lan::Mend(int node) const {
  Do(
      absl::StrCat("printf '%s\\n' 'flush ruleset' 'add table inet lan' "
                   "'add chain inet lan received { type filter hook input priority 0; }' "
                   "'add chain inet lan sent { type filter hook output priority 0; }' "
                   "| nsenter --net=/run/netns/",
                   Name(node), " nft -f -"));
}

void Lan::Throttle(int kilobits_per_second) const {
  const std::string shape =
      absl::StrCat("root tbf rate ", kilobits_per_second, "kbit burst 16kbit latency 400ms");
  Do(absl::StrCat("tc qdisc replace dev ", id_, "h ", shape, " && nsenter --net=/run/netns/", id_,
                  "sw tc qdisc replace dev host ", shape));
}

std::string Lan::Address(int last) const {
  return absl::StrCat("10.78.", getpid() % 250, ".", last);
}

std::string Lan::Name(int node) const {
  return absl::StrCat(id_, "n", node);
}

void Lan::Do(const std::string& command) const {
  const Outcome done = site_.RunProgram({"/bin/sh", "-c", command});
  EXPECT_EQ(done.exit_code, 0) << command << "\n" << done.Text();
}

void Lan::AddRule(int node, const std::string& chain, const std::string& match, int percent) const {
  Do(absl::StrCat("nsenter --net=/run/netns/", Name(node), " nft add rule inet lan ", chain, " ",
                  match, " numgen random mod 100 '<=' ", percent - 1, " drop"));
}

}  // namespace assay::testing
