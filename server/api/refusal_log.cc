#include "server/api/refusal_log.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "common/log.h"

namespace assay::api {
namespace {

constexpr absl::Duration kWindow = absl::Seconds(10);

// Without the port, which each connection has another of: "ipv4:10.0.0.9:4242" is "ipv4:10.0.0.9".
absl::string_view HostOf(absl::string_view peer) {
  const size_t colon = peer.rfind(':');
  return colon == absl::string_view::npos || !absl::StartsWith(peer, "ipv") ? peer
                                                                            : peer.substr(0, colon);
}

// As the core takes it.
std::string Bounded(absl::string_view text) {
  return absl::CHexEscape(text.substr(0, core::kRefusedTextBytesMax / 4));  // "\xff" at worst
}

}  // namespace

std::string RefusalLog::Note(absl::string_view peer, absl::string_view method,
                             const absl::Status& reason, const auth::Identity* identity) {
  if (!absl::IsUnauthenticated(reason) && !absl::IsPermissionDenied(reason)) return "";
  std::string line;
  {
    MutexLock lock(&mutex_);
    ++count_;
    if (absl::IsPermissionDenied(reason)) ++denied_count_;
    if (identity == nullptr || identity->role != auth::Role::kPublic)
      Collect({identity == nullptr ? "" : identity->principal, Bounded(HostOf(peer)),
               Bounded(method), Bounded(reason.message())});
    const MonoTime now = clock_->Mono();
    if (line_count_ == 0 || now - window_begin_ >= kWindow) {
      window_begin_ = now;
      line_count_ = 0;
    }
    if (line_count_ == kLinesMax) {
      ++untold_count_;
      return "";
    }
    ++line_count_;
    line = absl::StrCat("refused peer=\"", absl::CHexEscape(peer), "\" method=\"",
                        absl::CHexEscape(method), "\" reason=\"",
                        absl::CHexEscape(reason.message()), "\" total=", count_);
    if (untold_count_ > 0) absl::StrAppend(&line, " untold=", untold_count_);
    untold_count_ = 0;
  }
  LOG(WARNING) << line;
  return line;
}

void RefusalLog::Collect(Kind kind) {
  if (collected_.size() >= kKindsMax && !collected_.contains(kind))
    kind = {"", "others", "", "calls of further kinds"};
  core::RefusedCalls& calls = collected_[kind];
  if (calls.count++ > 0) return;
  std::tie(calls.principal, calls.peer, calls.method, calls.reason) = std::move(kind);
  calls.first_us = absl::ToUnixMicros(clock_->Wall());
}

std::vector<core::RefusedCalls> RefusalLog::Take() {
  MutexLock lock(&mutex_);
  std::vector<core::RefusedCalls> taken;
  for (auto& [kind, calls] : collected_)
    taken.push_back(std::move(calls));
  collected_.clear();
  return taken;
}

int64_t RefusalLog::count() const {
  MutexLock lock(&mutex_);
  return count_;
}

int64_t RefusalLog::count(absl::StatusCode code) const {
  MutexLock lock(&mutex_);
  if (code == absl::StatusCode::kPermissionDenied) return denied_count_;
  return code == absl::StatusCode::kUnauthenticated ? count_ - denied_count_ : 0;
}

}  // namespace assay::api
