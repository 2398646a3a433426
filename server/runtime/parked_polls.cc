#include "server/runtime/parked_polls.h"

#include <algorithm>
#include <utility>

namespace assay::runtime {

void ParkedPolls::Release(const std::string& worker, const core::Desired& desired) {
  const auto it = polls_.find(worker);
  if (it == polls_.end()) return;
  it->second.callback(core::Reply(core::SynchronizeReply{desired, true}));
  polls_.erase(it);
}

void ParkedPolls::Park(const std::string& worker, int64_t deadline_us, core::Desired desired,
                       ReplyCallback callback) {
  polls_.emplace(worker, Poll{deadline_us, std::move(desired), std::move(callback)});
}

void ParkedPolls::Answer(const core::Core& core, const std::set<std::string>& concerned,
                         int64_t now_us) {
  for (auto it = polls_.begin(); it != polls_.end();) {
    Poll& poll = it->second;
    const bool is_over = poll.deadline_us <= now_us;
    if (!is_over && concerned.count(it->first) == 0) {
      ++it;
      continue;
    }
    core::Desired desired = core.DesiredFor(it->first);
    if (!is_over && desired == poll.desired) {
      ++it;
      continue;
    }
    poll.callback(core::Reply(core::SynchronizeReply{std::move(desired), is_over}));
    it = polls_.erase(it);
  }
}

void ParkedPolls::Refuse(const std::string& worker, const CertificateTable& certificates) {
  const auto it = polls_.find(worker);
  if (it == polls_.end()) return;
  const int64_t valid_from = certificates.ValidFrom(worker);
  it->second.callback(core::CheckCertificate(worker, valid_from - 1, valid_from));
  polls_.erase(it);
}

void ParkedPolls::AnswerAll(const core::Core& core) {
  for (auto& [worker, poll] : polls_)
    poll.callback(core::Reply(core::SynchronizeReply{core.DesiredFor(worker), true}));
  polls_.clear();
}

std::optional<int64_t> ParkedPolls::NextDeadlineUs() const {
  std::optional<int64_t> next_us;
  for (const auto& [worker, poll] : polls_)
    next_us = std::min(next_us.value_or(poll.deadline_us), poll.deadline_us);
  return next_us;
}

}  // namespace assay::runtime
