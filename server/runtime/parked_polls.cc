#include "server/runtime/parked_polls.h"

#include <utility>

namespace assay::runtime {

void ParkedPolls::End(Polls::iterator it, absl::StatusOr<core::Reply> reply) {
  deadlines_.erase({it->second.deadline_us, it->first});
  const auto ended = polls_.extract(it);
  ended.mapped().callback(std::move(reply));
}

void ParkedPolls::EndInTime(Polls::iterator it, const core::Core& core) {
  core::Desired desired = core.DesiredFor(it->first);
  End(it, core::Reply(core::SynchronizeReply{std::move(desired), true}));
}

void ParkedPolls::Release(const std::string& worker, const core::Desired& desired) {
  const auto it = polls_.find(worker);
  if (it != polls_.end()) End(it, core::Reply(core::SynchronizeReply{desired, true}));
}

void ParkedPolls::Park(const std::string& worker, int64_t deadline_us, core::Desired desired,
                       ReplyCallback callback, IsAwaited is_awaited) {
  polls_.emplace(worker,
                 Poll{deadline_us, std::move(desired), std::move(callback), std::move(is_awaited)});
  deadlines_.emplace(deadline_us, worker);
}

std::vector<std::string> ParkedPolls::Answer(const core::Core& core,
                                             const std::set<std::string>& concerned,
                                             int64_t now_us) {
  std::vector<std::string> answered;
  while (!deadlines_.empty() && deadlines_.begin()->first <= now_us) {
    answered.push_back(deadlines_.begin()->second);
    EndInTime(polls_.find(answered.back()), core);
  }
  for (const std::string& worker : concerned) {
    const auto it = polls_.find(worker);
    if (it == polls_.end()) continue;
    core::Desired desired = core.DesiredFor(worker);
    if (desired == it->second.desired) continue;
    End(it, core::Reply(core::SynchronizeReply{std::move(desired), false}));
    answered.push_back(worker);
  }
  return answered;
}

std::vector<std::string> ParkedPolls::DropLost() {
  std::vector<std::string> awaited;
  for (auto it = polls_.begin(); it != polls_.end();) {
    const auto poll = it++;
    if (poll->second.is_awaited && !poll->second.is_awaited()) {
      End(poll, absl::CancelledError("nobody waits for the answer any more"));
    } else {
      awaited.push_back(poll->first);
    }
  }
  return awaited;
}

void ParkedPolls::Refuse(const std::string& worker, const CertificateTable& certificates) {
  const auto it = polls_.find(worker);
  if (it == polls_.end()) return;
  const int64_t valid_from = certificates.ValidFrom(worker);
  End(it, core::CheckCertificate(worker, valid_from - 1, valid_from));
}

void ParkedPolls::AnswerAll(const core::Core& core) {
  while (!polls_.empty())
    EndInTime(polls_.begin(), core);
}

std::optional<int64_t> ParkedPolls::NextDeadlineUs() const {
  if (deadlines_.empty()) return std::nullopt;
  return deadlines_.begin()->first;
}

}  // namespace assay::runtime
