#include "common/telemetry/cache_record.h"

#include "common/json_reader.h"
#include "common/json_value.h"

namespace assay::telemetry {

CacheRecord ReadCacheRecord(absl::string_view text) {
  CacheRecord record;
  const JsonResult parsed = ParseJson(text);
  if (parsed.error != JsonError::kNone) return record;
  const auto text_of = [&parsed](absl::string_view name) {
    const JsonValue* const member = parsed.value.Find(name);
    const std::string* const value = member == nullptr ? nullptr : member->AsString();
    return value == nullptr ? std::string() : *value;
  };
  const auto number_of = [&parsed](absl::string_view name) {
    const JsonValue* const member = parsed.value.Find(name);
    return member == nullptr ? std::nullopt : member->AsInt64();
  };
  record.coldness = text_of("coldness");
  record.file_system = text_of("file_system");
  const JsonValue* const is_local = parsed.value.Find("is_local");
  record.is_local = is_local != nullptr && is_local->AsBool() == true;
  record.boot_id = text_of("boot_id");
  record.train_bytes = number_of("train_bytes");
  record.files_elsewhere = number_of("files_elsewhere").value_or(0);
  record.other_runs = number_of("other_runs").value_or(0);
  return record;
}

}  // namespace assay::telemetry
