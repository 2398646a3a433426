// The reader of the official reference point checker: simpler than the rules' own, and different.

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/json_reader.h"
#include "common/mllog.h"
#include "common/rules/rcp.h"

namespace assay::rules {
namespace {

std::string MissingMember(absl::string_view name) {
  return absl::StrCat("KeyError('", name, "')");
}

// Python's round(value, 3).
double RoundToThousandths(double value) {
  char text[400];  // the longest double has 309 digits before the point
  std::snprintf(text, sizeof(text), "%.3f", value);
  return std::strtod(text, nullptr);
}

class Reader {
 public:
  // False once the official reader has died.
  bool Add(absl::string_view line) {
    const size_t token = line.rfind(kMllogToken);
    if (token == absl::string_view::npos) return true;
    const absl::string_view text = line.substr(token);
    const bool is_batch_size = absl::StrContains(text, "global_batch_size");
    const bool is_benchmark = absl::StrContains(text, "submission_benchmark");
    const bool is_quality =
        absl::StrContains(text, "eval_error") || absl::StrContains(text, "eval_accuracy");
    const bool is_end = absl::StrContains(text, "run_stop");
    if (!is_batch_size && !is_benchmark && !is_quality && !is_end) return true;
    const MllogLine record = ReadMllogLine(line);
    if (record.outcome != MllogOutcome::kRecord) {
      run_.exception = record.outcome == MllogOutcome::kCrash ? record.problem : "JSONDecodeError";
      return false;
    }
    if (is_batch_size) TakeBatchSize(BuildJson(record.value_json));
    if (is_benchmark) TakeBenchmark(BuildJson(record.value_json));
    if (is_quality) TakeEpoch(BuildJson(record.metadata_json));
    std::string storage;
    if (is_end && MllogKey(record, &storage) == "run_stop")
      TakeEnd(BuildJson(record.metadata_json));
    return run_.exception.empty();
  }

  ConvergenceRun Take() { return std::move(run_); }

 private:
  void TakeBatchSize(const JsonValue& value) {
    run_.batch_size = value.AsInt64();
    const std::optional<double> number = value.ToDouble();
    // 64.0 is 64 to the official tool as well.
    if (!run_.batch_size && number && std::fabs(*number) < 1e15 && *number == std::floor(*number))
      run_.batch_size = static_cast<int64_t>(*number);
  }

  void TakeBenchmark(const JsonValue& value) {
    run_.benchmark = value.AsString() == nullptr ? "" : *value.AsString();
  }

  void TakeEpoch(const JsonValue& metadata) {
    const JsonValue* epoch = metadata.Find("epoch_num");
    const std::optional<double> number = epoch == nullptr ? std::nullopt : epoch->ToDouble();
    if (epoch == nullptr) {
      run_.exception = MissingMember("epoch_num");
    } else if (!number) {
      run_.exception = "TypeError";
    } else {
      last_epoch_ = RoundToThousandths(*number);
    }
  }

  // The last run_stop decides.
  void TakeEnd(const JsonValue& metadata) {
    const JsonValue* status = metadata.Find("status");
    if (status == nullptr) {
      run_.exception = MissingMember("status");
      return;
    }
    const bool is_success = status->AsString() != nullptr && *status->AsString() == "success";
    run_.epochs = is_success ? last_epoch_ : std::nullopt;
  }

  ConvergenceRun run_;
  std::optional<double> last_epoch_;
};

}  // namespace

ConvergenceRun ReadConvergence(absl::string_view log_bytes) {
  Reader reader;
  MllogLines lines(log_bytes);
  for (absl::string_view line; lines.Next(&line);) {
    if (!reader.Add(line)) break;
  }
  return reader.Take();
}

}  // namespace assay::rules
