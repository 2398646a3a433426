#include "worker/agent/init_time.h"

#include <algorithm>

namespace assay::agent {

void InitTime::Take(absl::string_view key, const Stamp& arrival) {
  if (key == "run_start") is_over_ = true;
  if (key == "init_start" && !begin_.has_value()) begin_ = arrival;
  if (key == "staging_start" && !staging_ns_.has_value()) staging_ns_ = arrival.mono_ns;
  if (key != "staging_stop" || !staging_ns_.has_value()) return;
  if (begin_.has_value())
    staged_ += absl::Nanoseconds(arrival.mono_ns - std::max(*staging_ns_, begin_->mono_ns));
  staging_ns_.reset();
}

std::optional<absl::Time> InitTime::Begin() const {
  if (!begin_.has_value() || is_over_) return std::nullopt;
  return absl::FromUnixMicros(begin_->wall_us);
}

std::optional<MonoTime> InitTime::EndOf(absl::Duration limit) const {
  if (!Begin().has_value() || staging_ns_.has_value()) return std::nullopt;
  return MonoTime{begin_->mono_ns} + staged_ + limit;
}

}  // namespace assay::agent
