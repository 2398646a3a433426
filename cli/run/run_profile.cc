#include "cli/run/run_profile.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace assay::cli {
namespace {

const std::vector<Column>& ProfileFields() {
  static const auto* const kFields = new std::vector<Column>{
      {"profiled up to epoch", "profile.epoch"},
      {"ranks", "profile.ranks"},
      {"samples trained", "profile.train_samples"},
      {"samples evaluated", "profile.eval_samples"},
      {"training", "profile.train_s", Format::kSeconds},
      {"evaluation", "profile.eval_s", Format::kSeconds},
      {"training GFLOP", "profile.train_gflop", Format::kNumber},
      {"evaluation GFLOP", "profile.eval_gflop", Format::kNumber},
      {"training GFLOP/s", "profile.train_gflop_per_s", Format::kNumber},
      {"evaluation GFLOP/s", "profile.eval_gflop_per_s", Format::kNumber},
      {"peak GFLOP/s", "profile.peak_gflop_per_s", Format::kNumber},
      {"peak", "profile.peak_source"},
      {"share of the peak", "profile.peak_share", Format::kNumber},
      {"training GB through memory", "profile.train_gbyte", Format::kNumber},
      {"evaluation GB through memory", "profile.eval_gbyte", Format::kNumber},
      {"memory GB/s", "profile.memory_gbyte_per_s", Format::kNumber},
      {"the roof, s", "profile.roofline_s", Format::kNumber},
      {"set by", "profile.roofline_limit"},
      {"share of the roof", "profile.roofline_share", Format::kNumber},
      {"read", "profile.read_bytes", Format::kBytes},
      {"staged", "profile.staged_bytes", Format::kBytes},
      {"waiting for input, s", "profile.input_wait_s", Format::kNumber},
      {"of the slowest rank, s", "profile.input_wait_max_s", Format::kNumber},
      {"copying input, s", "profile.input_copy_s", Format::kNumber},
      {"samples kept on the device", "profile.cached_samples"},
      {"collectives exposed, s", "profile.collective_exposed_s", Format::kNumber},
      {"collectives overlapped, s", "profile.collective_overlapped_s", Format::kNumber},
      {"of it waiting for ranks, s", "profile.collective_wait_s", Format::kNumber},
      {"averages on the device", "profile.device_averages"},
      {"bytes in them", "profile.device_average_bytes", Format::kBytes},
      {"of them beside the backward pass", "profile.device_average_overlapped_bytes",
       Format::kBytes},
      {"exchanges on the device", "profile.device_exchanges"},
      {"bytes sent in them", "profile.device_exchange_bytes", Format::kBytes},
      {"memory of a rank, at most", "profile.memory_peak_bytes", Format::kBytes},
      {"of all ranks", "profile.memory_peak_sum_bytes", Format::kBytes}};
  return *kFields;
}

double ProfileNumber(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || !found->is_number() ? 0 : found->get<double>();
}

}  // namespace

std::string FormatProfile(const Json& profile) {
  std::string text =
      absl::StrFormat("profile epoch %.0f  %.4g GFLOP/s", ProfileNumber(profile, "epoch"),
                      ProfileNumber(profile, "train_gflop_per_s"));
  const double share = ProfileNumber(profile, "peak_share");
  if (share > 0) absl::StrAppendFormat(&text, "  %.0f%% of the peak", 100 * share);
  return text;
}

void AddProfile(const Json& profile, ShowView* view) {
  view->value["profile"] = profile;
  view->fields.insert(view->fields.end(), ProfileFields().begin(), ProfileFields().end());
  view->sections.push_back({"Staging, slowest nodes first",
                            "profile.staging",
                            {{"NODE", "node"},
                             {"BYTES", "bytes", Format::kBytes},
                             {"A SECOND", "bytes_per_s", Format::kBytes},
                             {"P99 OF FILES, S", "file_p99_s", Format::kNumber},
                             {"RETRIES", "retries"}}});
  view->sections.push_back({"Collectives by size",
                            "profile.collectives",
                            {{"SIZE", "size"},
                             {"OPERATIONS", "operations"},
                             {"BYTES", "bytes", Format::kBytes},
                             {"SENT", "sent_bytes", Format::kBytes},
                             {"EXPOSED, S", "exposed_s", Format::kNumber}}});
}

}  // namespace assay::cli
