#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "cli/command/command.h"

namespace assay::cli {

bool Arguments::Has(absl::string_view name) const {
  return values_.find(std::string(name)) != values_.end();
}

std::string Arguments::Get(absl::string_view name) const {
  const auto found = values_.find(std::string(name));
  return found == values_.end() ? "" : found->second.back();
}

std::vector<std::string> Arguments::All(absl::string_view name) const {
  const auto found = values_.find(std::string(name));
  return found == values_.end() ? std::vector<std::string>() : found->second;
}

absl::StatusOr<int64_t> Arguments::Integer(absl::string_view name, int64_t otherwise) const {
  if (!Has(name)) return otherwise;
  int64_t value = 0;
  if (!absl::SimpleAtoi(Get(name), &value)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--", name, ": '", Get(name), "' is not a whole number"));
  }
  return value;
}

absl::StatusOr<absl::Duration> ParseDurationText(absl::string_view text) {
  int64_t seconds = 0;
  if (absl::SimpleAtoi(text, &seconds)) return absl::Seconds(seconds);
  int64_t days = 0;
  if (absl::EndsWith(text, "d") && absl::SimpleAtoi(text.substr(0, text.size() - 1), &days))
    return absl::Hours(24) * days;  // saturates
  absl::Duration duration;
  if (absl::ParseDuration(text, &duration)) return duration;
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is not a duration; write 90s, 5m, 2h or 1d"));
}

absl::StatusOr<absl::Duration> Arguments::Duration(absl::string_view name,
                                                   absl::Duration otherwise) const {
  if (!Has(name)) return otherwise;
  return ParseDurationText(Get(name));
}

}  // namespace assay::cli
