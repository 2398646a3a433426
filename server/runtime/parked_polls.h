// The calls of workers that already do what they should: held until there is something else to do,
// or until their time is up.

#ifndef SERVER_RUNTIME_PARKED_POLLS_H_
#define SERVER_RUNTIME_PARKED_POLLS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/core/core.h"
#include "server/runtime/certificate_table.h"
#include "server/runtime/command_queue.h"

namespace assay::runtime {

// At most one call of each worker. Every callback is called exactly once. What a turn costs depends
// on how many calls it concerns, not on how many are held. Not thread-safe.
class ParkedPolls {
 public:
  // A worker that calls again has given up the call before, if there is one: its answer goes
  // nowhere, but frees it.
  void Release(const std::string& worker, const core::Desired& desired);

  // Holds a call of `worker`, which is to do what `desired` says, until `deadline_us`. Release the
  // call before it first.
  void Park(const std::string& worker, int64_t deadline_us, core::Desired desired,
            ReplyCallback callback, IsAwaited is_awaited);

  // Answers those of `concerned` for which `core` now has something else to do, and all whose
  // deadline is not after `now_us`. Returns the workers that were answered.
  std::vector<std::string> Answer(const core::Core& core, const std::set<std::string>& concerned,
                                  int64_t now_us);

  // Ends the calls that nobody waits for, with CANCELLED. Returns the workers of all others. Looks
  // at each call.
  std::vector<std::string> DropLost();

  // Ends the call of a worker whose certificates were revoked: it was let in while its certificate
  // was good. A worker that has enrolled since calls again.
  void Refuse(const std::string& worker, const CertificateTable& certificates);

  void AnswerAll(const core::Core& core);

  // The first deadline; nullopt if no call is held.
  std::optional<int64_t> NextDeadlineUs() const;

 private:
  struct Poll {
    int64_t deadline_us = 0;
    core::Desired desired;  // as it was when the call was parked
    ReplyCallback callback;
    IsAwaited is_awaited;
  };
  using Polls = std::map<std::string, Poll>;  // by worker

  // Gives the call its answer; it is held no longer.
  void End(Polls::iterator it, absl::StatusOr<core::Reply> reply);
  void EndInTime(Polls::iterator it, const core::Core& core);

  Polls polls_;
  std::set<std::pair<int64_t, std::string>> deadlines_;  // of the same calls
};

}  // namespace assay::runtime

#endif  // SERVER_RUNTIME_PARKED_POLLS_H_
