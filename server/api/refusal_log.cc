#include "server/api/refusal_log.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "common/log.h"

namespace assay::api {
namespace {

constexpr absl::Duration kWindow = absl::Seconds(10);

}  // namespace

std::string RefusalLog::Note(absl::string_view peer, absl::string_view method,
                             const absl::Status& reason) {
  if (!absl::IsUnauthenticated(reason) && !absl::IsPermissionDenied(reason)) return "";
  std::string line;
  {
    MutexLock lock(&mutex_);
    ++count_;
    if (absl::IsPermissionDenied(reason)) ++denied_count_;
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
