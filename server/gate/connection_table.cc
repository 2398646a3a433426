#include "server/gate/connection_table.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "common/log.h"

namespace assay::gate {
namespace {

constexpr int kConnectionsMax = 16384;     // ten thousand agents, and people
constexpr int kDescriptorsAssumed = 1024;  // should getrlimit fail: the usual soft limit
constexpr size_t kIdleTriesMax = 256;      // a bound on the work of one Bind

bool IsClosed(int fd) {
  return fcntl(fd, F_GETFD) == -1 && errno == EBADF;
}

}  // namespace

ConnectionTable::Range ConnectionTable::DefaultRange() {
  rlimit limit{};
  int descriptors = kDescriptorsAssumed;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    descriptors = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 1 << 20));
  const int count = std::min(descriptors / 4, kConnectionsMax);
  return Range{.first = descriptors - count,
               .count = count,
               .count_per_peer = std::max(16, count / 8),
               .reserved_count = std::max(8, count / 16)};
}

ConnectionTable::ConnectionTable(Range range)
    : range_(range),
      evidence_(static_cast<size_t>(range.count)),
      idle_(static_cast<size_t>(range.count)) {
  std::iota(idle_.begin(), idle_.end(), size_t{0});
}

std::string ConnectionTable::PeerOf(const auth::Evidence& evidence) {
  if (!evidence.certificate_token_sha256.empty()) {
    return absl::StrCat("token ", evidence.certificate_token_sha256.substr(0, 8), " of ",
                        evidence.certificate_common_name);
  }
  if (!evidence.certificate_common_name.empty())
    return absl::StrCat("worker ", evidence.certificate_common_name);
  return absl::StrCat("uid ", evidence.user.value_or(0));
}

std::optional<size_t> ConnectionTable::TakeIdle() {
  const size_t tries = std::min(idle_.size(), kIdleTriesMax);
  for (size_t i = 0; i < tries; ++i) {
    const size_t index = idle_.front();
    idle_.pop_front();
    if (IsClosed(range_.first + static_cast<int>(index))) return index;
    idle_.push_back(index);
  }
  return std::nullopt;
}

absl::StatusOr<UniqueFd> ConnectionTable::Bind(UniqueFd connection, const auth::Evidence& evidence,
                                               bool is_operator) {
  const std::string peer = PeerOf(evidence);
  MutexLock lock(&mutex_);
  int& bound = counts_[peer];
  const auto idle = static_cast<int>(idle_.size());
  const bool is_full = is_operator ? idle == 0 : idle <= range_.reserved_count;
  if (is_full || (!is_operator && bound >= range_.count_per_peer)) {
    const int count = bound;
    if (bound == 0) counts_.erase(peer);
    return absl::ResourceExhaustedError(
        is_full ? absl::StrCat("the coordinator has ", range_.count - idle,
                               " connections, as many as it takes: try again later")
                : absl::StrCat(peer, " has ", count, " connections, as many as it may have"));
  }
  const std::optional<size_t> index = TakeIdle();
  const int number = range_.first + static_cast<int>(index.value_or(0));
  UniqueFd moved(index.has_value() ? fcntl(connection.get(), F_DUPFD_CLOEXEC, number) : -1);
  if (moved.get() != number || !index.has_value()) {
    if (index.has_value()) idle_.push_back(*index);
    if (bound == 0) counts_.erase(peer);
    return absl::ResourceExhaustedError("the coordinator is out of descriptors: try again later");
  }
  ++bound;
  evidence_[*index] = evidence;
  return moved;
}

void ConnectionTable::Release(int number) {
  CHECK(number >= range_.first && number < range_.first + range_.count);
  const auto index = static_cast<size_t>(number - range_.first);
  MutexLock lock(&mutex_);
  // The evidence stays: calls of the connection may still ask.
  const auto count = counts_.find(PeerOf(*evidence_[index]));
  CHECK(count != counts_.end());
  if (--count->second == 0) counts_.erase(count);
  idle_.push_back(index);
}

std::optional<auth::Evidence> ConnectionTable::Find(absl::string_view peer) const {
  int number = 0;
  if (!absl::ConsumePrefix(&peer, "fd:") || !absl::SimpleAtoi(peer, &number)) return std::nullopt;
  if (number < range_.first || number >= range_.first + range_.count) return std::nullopt;
  MutexLock lock(&mutex_);
  return evidence_[static_cast<size_t>(number - range_.first)];
}

}  // namespace assay::gate
