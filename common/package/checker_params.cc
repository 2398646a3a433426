#include "common/package/checker_params.h"

#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "common/mllog.h"
#include "common/package/findings.h"
#include "common/package/text.h"

namespace assay::package {
namespace {

constexpr size_t kFindingsMax = 20;

bool IsUtf8(absl::string_view bytes) {
  for (size_t at = 0; at < bytes.size();) {
    uint32_t code_point = 0;
    const int length = ReadCodePoint(bytes, at, &code_point);
    if (length == 0) return false;
    at += static_cast<size_t>(length);
  }
  return true;
}

}  // namespace

CheckerParams ParseCheckerParams(absl::string_view bytes) {
  CheckerParams params;
  if (!IsUtf8(bytes)) {
    params.findings.push_back(Violation("R-PKG-017", "bytes that are not UTF-8"));
    return params;
  }
  MllogLines lines(bytes);  // the same line ends as Python's
  for (absl::string_view line; lines.Next(&line);) {
    const bool is_last_without_end = line.data() + line.size() == bytes.data() + bytes.size();
    if (is_last_without_end && line == "rcp-bypass") {
      params.bypasses_rcp = true;
    } else if (is_last_without_end && line == "seed-checker-bypass") {
      params.bypasses_seeds = true;
    } else if (!absl::StripAsciiWhitespace(line).empty() && params.findings.size() < kFindingsMax) {
      rules::Finding finding = Violation("R-PKG-014", absl::StrCat("\"", line, "\""));
      finding.line = lines.line_number();
      params.findings.push_back(std::move(finding));
    }
  }
  return params;
}

}  // namespace assay::package
