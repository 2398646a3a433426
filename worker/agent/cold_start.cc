#include "worker/agent/cold_start.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

#include "common/exit_code.h"
#include "common/file.h"
#include "common/log.h"
#include "common/mllog.h"
#include "common/process.h"
#include "common/secret.h"
#include "common/status.h"
#include "worker/agent/other_runs.h"
#include "worker/privileged/helper.h"

namespace assay::agent {
namespace {

constexpr int kTriesMax = 2;
constexpr int64_t kBoundShare = 1000;  // of the dataset; C2 of the witness's specification
constexpr size_t kFilesShown = 5;

std::optional<int64_t> FieldBytes(absl::string_view meminfo, absl::string_view field) {
  for (const absl::string_view line : absl::StrSplit(meminfo, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    int64_t kib = 0;
    if (words.size() >= 2 && words[0] == field && absl::SimpleAtoi(words[1], &kib))
      return kib * 1024;
  }
  return std::nullopt;
}

double MibOf(int64_t pages) {
  return static_cast<double>(pages) * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

absl::string_view NameOf(Coldness coldness) {
  switch (coldness) {
    case Coldness::kCold:
      return "cold";
    case Coldness::kBounded:
      return "bounded";
    case Coldness::kWarm:
      return "warm";
    case Coldness::kUnknown:
      return "unknown";
  }
  return "unknown";
}

// What keeps a reset from being proof, as sentences.
std::vector<std::string> Unknowns(const ColdStart& start) {
  std::vector<std::string> unknowns = start.file_system.unknown_caches;
  if (start.residency.untold_files > 0)
    unknowns.push_back(absl::StrCat(start.residency.untold_files,
                                    " files were not checked: ", start.residency.untold));
  const std::string sampled = Confidence(start.residency);
  if (!sampled.empty()) unknowns.push_back(absl::StrCat("only a sample was checked: ", sampled));
  return unknowns;
}

std::string TextOf(const ColdStart& start, const Stamp& stamp) {
  const Residency& residency = start.residency;
  JsonList unknowns;
  for (std::string& sentence : Unknowns(start))
    unknowns.emplace_back(std::move(sentence));
  JsonList resident;
  for (size_t i = 0; i < std::min(residency.resident.size(), kFilesShown); ++i)
    resident.emplace_back(JsonObject{{"path", JsonValue(residency.resident[i].path)},
                                     {"pages", JsonValue(residency.resident[i].pages)}});
  JsonList holders;
  for (const FileHolder& holder : start.holders.holders)
    holders.emplace_back(JsonObject{{"pid", JsonValue(int64_t{holder.pid})},
                                    {"process", JsonValue(holder.process)},
                                    {"account", JsonValue(int64_t{holder.account})},
                                    {"path", JsonValue(holder.path)}});
  const RootSize training = residency.roots.empty() ? RootSize{} : residency.roots[0];
  JsonObject json{
      {"coldness", JsonValue(NameOf(ColdnessOf(start)))},
      {"reason", JsonValue(WhyWarm(start))},
      {"method", JsonValue(start.reset.method)},
      {"tries", JsonValue(int64_t{start.tries})},
      {"file_system", JsonValue(start.file_system.type)},
      {"is_local", JsonValue(start.file_system.is_local)},
      {"boot_id", JsonValue(BootId())},
      {"not_known", JsonValue(std::move(unknowns))},
      {"file_count", JsonValue(residency.file_count)},
      {"checked_files", JsonValue(residency.checked_files)},
      {"seed", JsonValue(absl::StrCat(residency.seed))},  // 64 bits: more than a double holds
      {"resident_pages", JsonValue(residency.pages.resident)},
      {"unwritten_pages", JsonValue(residency.pages.unwritten)},
      {"page_bytes", JsonValue(int64_t{sysconf(_SC_PAGESIZE)})},
      {"dataset_bytes", JsonValue(residency.EstimatedBytes())},
      {"train_bytes", training.seen_files > 0 ? JsonValue(training.EstimatedBytes()) : JsonValue()},
      {"files_elsewhere", JsonValue(training.elsewhere_count)},
      {"bound_bytes", start.bound_bytes.has_value() ? JsonValue(*start.bound_bytes) : JsonValue()},
      {"resident", JsonValue(std::move(resident))},
      {"holders", JsonValue(std::move(holders))},
      {"hidden_processes", JsonValue(start.holders.hidden_count)},
      {"other_runs", JsonValue(static_cast<int64_t>(start.other_step_count))},
      {"node_cache", start.node_cache},
      {"wall_us", JsonValue(stamp.wall_us)},
      {"mono_ns", JsonValue(stamp.mono_ns)}};
  return absl::StrCat(DumpJson(JsonValue(std::move(json))), "\n");
}

}  // namespace

std::optional<int64_t> CachedFileBytes(absl::string_view meminfo) {
  const std::optional<int64_t> cached = FieldBytes(meminfo, "Cached:");
  const std::optional<int64_t> shared = FieldBytes(meminfo, "Shmem:");
  if (!cached.has_value() || !shared.has_value()) return std::nullopt;
  return std::max<int64_t>(0, *cached - *shared);
}

Coldness ColdnessOf(const ColdStart& start) {
  const Residency& residency = start.residency;
  if (start.file_system.is_memory) return Coldness::kWarm;
  const bool is_known = start.file_system.is_page_cache && residency.untold_files == 0 &&
                        (residency.checked_files > 0 || residency.file_count == 0);
  if (is_known && residency.pages.resident == 0) return Coldness::kCold;
  // A page that the kernel works with just then stays, whoever asks.
  if (is_known && residency.checked_files == residency.file_count &&
      residency.pages.resident * sysconf(_SC_PAGESIZE) <= residency.EstimatedBytes() / kBoundShare)
    return Coldness::kBounded;
  if (start.file_system.is_page_cache && start.bound_bytes.has_value() &&
      *start.bound_bytes <= residency.EstimatedBytes() / kBoundShare)
    return Coldness::kBounded;
  return residency.pages.resident > 0 ? Coldness::kWarm : Coldness::kUnknown;
}

absl::StatusOr<ColdStart> MakeCold(const ColdStartOptions& options, const Clock& clock) {
  ColdStart start;
  ASSIGN_OR_RETURN(start.file_system, FileSystemOf(options.dataset_directory));
  while (start.tries < kTriesMax) {
    ++start.tries;
    ASSIGN_OR_RETURN(start.reset, ResetCaches(options.dataset_directory, options.drop_caches_path,
                                              options.helper_socket));
    LOG(INFO) << "caches reset method=" << start.reset.method << " files=" << start.reset.file_count
              << " try=" << start.tries;
    const absl::StatusOr<std::string> meminfo = ReadFile("/proc/meminfo");
    if (meminfo.ok()) start.bound_bytes = CachedFileBytes(*meminfo);
    ASSIGN_OR_RETURN(start.residency,
                     MeasureResidency(options.sample_folders, options.residency, clock));
    if (ColdnessOf(start) != Coldness::kWarm || start.file_system.is_memory) break;
  }
  // Looking has loaded the files' inodes. Through the helper they stay.
  if (start.reset.method == "drop_caches")
    privileged::DropCaches(options.drop_caches_path, privileged::kInodes).IgnoreError();
  if (ColdnessOf(start) == Coldness::kWarm) start.holders = FindHolders(start.residency.resident);
  start.other_step_count = OtherSteps(geteuid()).size();
  LOG(INFO) << "caches verified coldness=" << NameOf(ColdnessOf(start))
            << " resident_pages=" << start.residency.pages.resident
            << " checked_files=" << start.residency.checked_files << " of "
            << start.residency.file_count << " seed=" << start.residency.seed;
  return start;
}

std::string WhyWarm(const ColdStart& start) {
  if (ColdnessOf(start) != Coldness::kWarm) return "";
  if (start.file_system.is_memory)
    return absl::StrCat("the dataset lies on ", start.file_system.type, ", which is memory");
  const Residency& residency = start.residency;
  std::string text = absl::StrFormat(
      "%d pages (%.1f MiB) of %d checked files of the dataset are in memory after %d resets: ",
      residency.pages.resident, MibOf(residency.pages.resident), residency.checked_files,
      start.tries);
  for (size_t i = 0; i < std::min(residency.resident.size(), kFilesShown); ++i)
    absl::StrAppend(&text, i == 0 ? "" : ", ", residency.resident[i].path, " (",
                    residency.resident[i].pages, " pages)");
  if (residency.resident.size() > kFilesShown) absl::StrAppend(&text, " and others");
  absl::StrAppend(&text, "; ", Describe(start.holders));
  if (start.other_step_count > 0)
    absl::StrAppend(&text, "; ", start.other_step_count, " other runs are at work on this machine");
  return text;
}

std::optional<StepExit> RefusalOf(const ColdStart& start, absl::string_view division) {
  if (division != "closed" || ColdnessOf(start) != Coldness::kWarm) return std::nullopt;
  if (start.file_system.is_memory)
    return StepExit{static_cast<int>(ExitCode::kBadData),
                    absl::StrCat(WhyWarm(start), ": put it on storage (R-TIM-005)")};
  if (start.other_step_count > 0) return std::nullopt;
  return StepExit{
      static_cast<int>(ExitCode::kNodeFailed),
      absl::StrCat("the closed division starts with data out of memory, but ", WhyWarm(start),
                   ": end what holds or reads them on this node (R-TIM-005)")};
}

JsonObject CacheClearMetadata(const ColdStart& start) {
  JsonObject metadata{{"method", JsonValue(start.reset.method)}};
  if (start.reset.file_count > 0)
    metadata.emplace_back("file_count", JsonValue(start.reset.file_count));
  if (start.residency.checked_files > 0 && start.file_system.is_page_cache)
    metadata.emplace_back("resident_pages", JsonValue(start.residency.pages.resident));
  metadata.emplace_back("checked_files", JsonValue(start.residency.checked_files));
  if (start.bound_bytes.has_value())
    metadata.emplace_back("bound_bytes", JsonValue(*start.bound_bytes));
  return metadata;
}

absl::Status LogCacheClear(const ColdStart& start, const std::string& path,
                           const std::optional<Account>& ranks, const Clock& clock) {
  const UniqueFd file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, kPrivateFile));
  if (!file.is_open()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  RETURN_IF_ERROR(GiveTo(ranks, path));
  absl::Status status;
  MllogWriter writer([&clock] { return absl::ToUnixMillis(clock.Wall()); },
                     [&](absl::string_view line) { status = WriteAll(file.get(), line); });
  writer.Event("cache_clear", JsonValue(true), CacheClearMetadata(start));
  return Annotate(status, path);
}

absl::Status RecordColdStart(const ColdStart& start, const RunDirectory& directory,
                             const Stamp& stamp) {
  RETURN_IF_ERROR(WriteFileAtomic(directory.CachesPath(), TextOf(start, stamp), kPrivateFile));
  const std::string why = WhyWarm(start);
  if (why.empty()) return absl::OkStatus();
  LOG(WARNING) << why;
  return directory.WriteFaults(directory.MemoryPath(), {{"R-TIM-005", why}});
}

uint64_t RandomSeed() {
  uint64_t seed = 0;
  const std::string bytes = RandomBytes(sizeof(seed));
  std::memcpy(&seed, bytes.data(), sizeof(seed));
  return seed;
}

}  // namespace assay::agent
