// A small network on one machine: a switch, the coordinator's host (this machine as it is) and
// nodes in network namespaces of their own, whose cables can be bad.

#ifndef TESTS_E2E_LAN_H_
#define TESTS_E2E_LAN_H_

#include <string>
#include <vector>

#include "tests/e2e/site.h"

namespace assay::testing {

class Lan {
 public:
  // Why there can be none here; empty if there can. `is_of_kernel`: no package helps.
  static std::string Obstacle(bool* is_of_kernel);

  Lan(const Site* site, int node_count);
  ~Lan();

  std::string host_address() const { return Address(1); }
  std::string node_address(int node) const { return Address(10 + node); }
  // What a command needs in front of it to run on a node.
  std::vector<std::string> OnNode(int node) const;

  // From now on the node loses what it receives from `address`, or so much of it.
  void Lose(int node, const std::string& address, int percent = 100) const;
  // The same, of what it sends there.
  void LoseSent(int node, const std::string& address, int percent = 100) const;
  // The node's cables are good again.
  void Mend(int node) const;
  // What the host sends and receives passes at so many kilobits a second, and no more.
  void Throttle(int kilobits_per_second) const;

 private:
  std::string Address(int last) const;
  std::string Name(int node) const;
  void Do(const std::string& command) const;
  void AddRule(int node, const std::string& chain, const std::string& match, int percent) const;

  const Site& site_;
  const std::string id_;  // of this process, in the names of all that is made
  const int node_count_;
};

}  // namespace assay::testing

#endif  // TESTS_E2E_LAN_H_
