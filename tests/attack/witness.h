// Somebody with every right to be served, who notes how well that goes.

#ifndef TESTS_ATTACK_WITNESS_H_
#define TESTS_ATTACK_WITNESS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"

#include "tests/attack/hostile.h"
#include "tests/integration/deployment.h"

namespace assay::testing {

// How long an attack lasts: ASSAY_ATTACK_SECONDS, or 3.
absl::Duration AttackDuration();

// What became of calls.
struct Account {
  std::vector<absl::Duration> latencies;  // of the calls that were answered
  std::vector<std::string> losses;        // what the others ended with

  void Add(const Account& other);
  // The latency that `share` of the calls did not exceed; zero if there were none.
  absl::Duration Quantile(double share) const;
};

// Calls GetServerInfo until it is told to stop: some calls over one connection, then a new one.
class Witness {
 public:
  explicit Witness(Endpoint endpoint);
  // Waits for the call under way.
  ~Witness();

  // What has happened; afterwards it calls no more.
  Account Stop();

 private:
  void Run();

  const Endpoint endpoint_;
  Bell bell_;
  Account account_;  // of the thread, until it has ended
  std::thread thread_;
};

// Memory that a process has now and has had at most, in bytes.
struct Memory {
  int64_t resident = 0;
  int64_t peak = 0;
};
Memory MemoryOf(pid_t pid);

// How many descriptors a process has open.
int64_t DescriptorsOf(pid_t pid);

// "0.52 0.61 0.80", as the kernel says it.
std::string LoadAverage();

}  // namespace assay::testing

#endif  // TESTS_ATTACK_WITNESS_H_
