#include "common/rules/finding.h"

#include "absl/strings/str_cat.h"

namespace assay::rules {

absl::string_view SeverityName(Severity severity) {
  return severity == Severity::kError ? "error" : "warning";
}

std::string Format(absl::string_view path, const Finding& finding) {
  std::string text(path);
  if (finding.line > 0) absl::StrAppend(&text, ":", finding.line);
  absl::StrAppend(&text, ": ", SeverityName(finding.severity), " ", finding.rule_id, ": ");
  if (!finding.key.empty()) absl::StrAppend(&text, finding.key, ": ");
  absl::StrAppend(&text, "expected ", finding.expected, ", found ", finding.found);
  if (!finding.section.empty()) absl::StrAppend(&text, " [", finding.section, "]");
  if (!finding.remedy.empty()) absl::StrAppend(&text, "; fix: ", finding.remedy);
  return text;
}

}  // namespace assay::rules
