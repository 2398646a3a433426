#include "worker/agent/stage_check.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/log.h"
#include "worker/agent/cold_start.h"
#include "worker/agent/file_system.h"

namespace assay::agent {
namespace {

constexpr char kRule[] = "R-TIM-004";
constexpr absl::Duration kBudget = absl::Milliseconds(30);
constexpr absl::Duration kLate = absl::Seconds(10);  // an agent that was away
constexpr double kAllowanceMib = 16;
constexpr double kStorageMibPerSecond = 8 * 1024;  // above what a node's storage delivers

std::string Others(const Residency& residency) {
  std::string text = absl::StrCat(" (", residency.resident.front().path);
  if (residency.resident.size() > 1)
    absl::StrAppend(&text, " and ", residency.resident.size() - 1, " more files");
  return absl::StrCat(text, ")");
}

}  // namespace

std::string WhyStageIsWarm(const Residency& residency, absl::Duration elapsed) {
  if (residency.checked_files == 0 || residency.pages.resident == 0) return "";
  const double page_mib = static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
  const std::string seen =
      absl::StrFormat("%d of %d copies looked at, seed %d", residency.checked_files,
                      residency.file_count, residency.seed);
  if (residency.pages.unwritten > 0)
    return absl::StrFormat("%d pages (%.1f MiB) were in memory and not on storage yet: %s%s",
                           residency.pages.unwritten,
                           static_cast<double>(residency.pages.unwritten) * page_mib, seen,
                           Others(residency));
  const double share =
      static_cast<double>(residency.file_count) / static_cast<double>(residency.checked_files);
  const double resident_mib = static_cast<double>(residency.pages.resident) * page_mib * share;
  const double readable_mib =
      kAllowanceMib + kStorageMibPerSecond * std::max(0.0, absl::ToDoubleSeconds(elapsed));
  if (resident_mib <= readable_mib) return "";
  return absl::StrFormat(
      "%.0f MiB were in memory %.3f s after the clock had started, more than the %.0f MiB that can "
      "have been read from storage by then: %s%s",
      resident_mib, absl::ToDoubleSeconds(elapsed), readable_mib, seen, Others(residency));
}

std::optional<NodeFault> CheckStage(const std::vector<std::string>& folders, absl::Time start,
                                    const Clock& clock) {
  if (folders.empty() || clock.Wall() - start > kLate) return std::nullopt;
  const absl::StatusOr<FileSystem> file_system = FileSystemOf(folders.front());
  if (file_system.ok() && file_system->is_memory)
    return NodeFault{
        kRule, absl::StrCat("the staged copies lie on ", file_system->type, ", which is memory")};
  if (!file_system.ok() || !file_system->is_page_cache) return std::nullopt;
  const absl::StatusOr<Residency> residency =
      MeasureResidency(folders, {.seed = RandomSeed(), .budget = kBudget}, clock);
  if (!residency.ok()) {
    LOG(WARNING) << "the staged copies are not looked at: " << residency.status();
    return std::nullopt;
  }
  const absl::Duration elapsed = clock.Wall() - start;
  LOG(INFO) << "staged copies looked at after=" << elapsed
            << " resident_pages=" << residency->pages.resident
            << " unwritten_pages=" << residency->pages.unwritten
            << " checked_files=" << residency->checked_files << " of " << residency->file_count
            << " untold=" << residency->untold_files;
  const std::string why = WhyStageIsWarm(*residency, elapsed);
  return why.empty() ? std::nullopt : std::optional(NodeFault{kRule, why});
}

}  // namespace assay::agent
