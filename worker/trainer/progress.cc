#include "worker/trainer/progress.h"

#include <fcntl.h>

#include <utility>

#include "absl/time/time.h"

namespace assay {
namespace {

// Often enough for a bar that moves, rare enough to cost nothing beside a training step.
constexpr absl::Duration kInterval = absl::Milliseconds(500);

}  // namespace

Progress::Progress(const std::string& path, const Clock* clock) : clock_(clock) {
  if (!path.empty())
    file_ = UniqueFd(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
}

void Progress::Report(const ProgressPoint& point, JsonObject extra) {
  if (!file_.is_open()) return;
  const MonoTime now = clock_->Mono();
  const bool is_due = is_first_ || now - last_ >= kInterval || point.done == point.total;
  if (!is_due) return;
  is_first_ = false;
  last_ = now;
  JsonObject record = {{"phase", JsonValue(point.phase)},
                       {"epoch", JsonValue(point.epoch)},
                       {"done", JsonValue(point.done)},
                       {"total", JsonValue(point.total)}};
  for (auto& member : extra)
    record.push_back(std::move(member));
  Write(std::move(record));
}

void Progress::ReportProfile(JsonObject profile) {
  if (!file_.is_open()) return;
  Write({{"profile", JsonValue(std::move(profile))}});
}

void Progress::Write(JsonObject record) {
  if (!WriteAll(file_.get(), DumpJson(JsonValue(std::move(record))) + "\n").ok()) file_.Reset();
}

}  // namespace assay
