#include "worker/agent/gate_record.h"

#include <unistd.h>

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"

#include "common/json_document.h"

namespace assay::agent {
namespace {

constexpr int64_t kAllowedShare = 1000;  // of the dataset's bytes

double Mib(int64_t bytes) {
  return static_cast<double>(bytes) / (1 << 20);
}

}  // namespace

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Stamp, wall_us, mono_ns)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GateRecord, path, held_by, access, pid, process, stamp, held_us,
                                   are_copies, others_count, file_count, checked_files,
                                   checked_bytes, why_unchecked, armed_pages, resident_pages,
                                   is_exact, why_inexact, device_bytes, dataset_bytes)

std::string GateRecordJson(const GateRecord& record) {
  return nlohmann::json(record).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

absl::StatusOr<GateRecord> ParseGateRecord(absl::string_view json) {
  const auto parsed = ParseJsonDocument<nlohmann::json>(json);
  // Keys and types are those of a new record, or it is none.
  const nlohmann::json model = GateRecord();
  const auto is_like = [](const nlohmann::json& a, const nlohmann::json& b) {
    return a.type() == b.type() || (a.is_number_integer() && b.is_number_integer());
  };
  if (!parsed.is_object() || !parsed.contains("stamp") || !parsed["stamp"].is_object())
    return absl::DataLossError("not a record of a gate");
  for (const auto& [key, value] : model.items())
    if (!parsed.contains(key) || !is_like(parsed[key], value))
      return absl::DataLossError(absl::StrCat("a gate's record without ", key));
  for (const auto& [key, value] : model["stamp"].items())
    if (!parsed["stamp"].contains(key) || !is_like(parsed["stamp"][key], value))
      return absl::DataLossError(absl::StrCat("a gate's record without the stamp's ", key));
  return parsed.get<GateRecord>();
}

int64_t PagesThatCame(const GateRecord& record) {
  return std::max<int64_t>(0, record.resident_pages - record.armed_pages);
}

std::string ReadPastGate(const GateRecord& record) {
  if (record.are_copies) return "";
  const int64_t came_bytes = PagesThatCame(record) * sysconf(_SC_PAGESIZE);
  if (came_bytes > record.checked_bytes / kAllowedShare)
    return absl::StrFormat("%.1f MiB of %d files of the dataset had come into memory",
                           Mib(came_bytes), record.checked_files);
  if (record.is_exact && record.device_bytes > record.dataset_bytes / kAllowedShare)
    return absl::StrFormat("%.1f MiB of the dataset's blocks had been read from their device",
                           Mib(record.device_bytes));
  return "";
}

}  // namespace assay::agent
