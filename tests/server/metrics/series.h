// One value of a scrape, by its name and labels.

#ifndef TESTS_SERVER_METRICS_SERIES_H_
#define TESTS_SERVER_METRICS_SERIES_H_

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace assay::testing {

// `series` as the text format has it: assay_runs{state="queued"}. Nullopt if it is not there.
inline std::optional<double> ValueOf(absl::string_view text, absl::string_view series) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    double value = 0;
    if (absl::StartsWith(line, absl::StrCat(series, " ")) &&
        absl::SimpleAtod(line.substr(series.size() + 1), &value))
      return value;
  }
  return std::nullopt;
}

inline std::string TextOf(const std::vector<prometheus::MetricFamily>& families) {
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace assay::testing

#endif  // TESTS_SERVER_METRICS_SERIES_H_
