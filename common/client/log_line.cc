#include "common/client/log_line.h"

#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"

#include "common/json_document.h"

namespace assay::client {
namespace {

constexpr absl::string_view kToken = ":::MLLOG ";

std::string ValueText(const nlohmann::json& value) {
  if (value.is_null()) return "";
  if (value.is_number_float()) return absl::StrFormat("%.5g", value.get<double>());
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string TextMember(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || !found->is_string() ? "" : found->get<std::string>();
}

int64_t IntegerMember(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || !found->is_number_integer() ? 0 : found->get<int64_t>();
}

}  // namespace

std::optional<LogLine> ParseLogLine(absl::string_view text) {
  const size_t at = text.rfind(kToken);
  if (at == absl::string_view::npos) return std::nullopt;
  const absl::string_view body = text.substr(at + kToken.size());
  const nlohmann::json record = ParseJsonDocument<nlohmann::json>(body);
  if (!record.is_object() || !record.contains("key") || !record["key"].is_string())
    return std::nullopt;
  LogLine line;
  line.key = record["key"].get<std::string>();
  if (record.contains("value")) line.value = ValueText(record["value"]);
  if (record.contains("time_ms") && record["time_ms"].is_number())
    line.time_ms = std::llround(record["time_ms"].get<double>());
  if (!record.contains("metadata") || !record["metadata"].is_object()) return line;
  const nlohmann::json& metadata = record["metadata"];
  if (metadata.contains("epoch_num") && metadata["epoch_num"].is_number_integer())
    line.epoch = metadata["epoch_num"].get<int64_t>();
  return line;
}

bool IsQuality(absl::string_view key) {
  return absl::StartsWith(key, "eval_") && key != "eval_start" && key != "eval_stop" &&
         key != "eval_samples";
}

std::optional<TrainerProgress> ParseProgress(absl::string_view text) {
  const nlohmann::json json = ParseJsonDocument<nlohmann::json>(text);
  if (!json.is_object()) return std::nullopt;
  TrainerProgress progress;
  progress.phase = TextMember(json, "phase");
  if (progress.phase.empty()) return std::nullopt;  // another kind of record
  progress.epoch = IntegerMember(json, "epoch");
  progress.done = IntegerMember(json, "done");
  progress.total = IntegerMember(json, "total");
  for (const char* metric : {"loss", "eval_error", "eval_accuracy"})
    if (json.contains(metric)) progress.metric = absl::StrCat(metric, " ", ValueText(json[metric]));
  return progress;
}

std::string FormatProgress(const TrainerProgress& progress) {
  std::string text = progress.phase;
  if (progress.epoch > 0) absl::StrAppend(&text, " epoch ", progress.epoch);
  if (progress.total > 0) absl::StrAppend(&text, "  ", progress.done, "/", progress.total);
  if (!progress.metric.empty()) absl::StrAppend(&text, "  ", progress.metric);
  return text;
}

std::string FormatTouch(absl::string_view text) {
  const nlohmann::json json = ParseJsonDocument<nlohmann::json>(text);
  if (!json.is_object()) return std::string(text);
  return absl::StrCat(TextMember(json, "path"), " (", TextMember(json, "access"), ", by ",
                      TextMember(json, "mechanism"), ")");
}

}  // namespace assay::client
