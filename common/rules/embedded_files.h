// The data files that are compiled in, as text. Use FindRuleSet (registry.h) and
// FindBenchmarkSettings (benchmark_settings.h) to get what they say.

#ifndef COMMON_RULES_EMBEDDED_FILES_H_
#define COMMON_RULES_EMBEDDED_FILES_H_

#include <span>

#include "absl/strings/string_view.h"

namespace assay::rules {

struct EmbeddedFile {
  absl::string_view name;  // "hpc-3.0.0.json"
  absl::string_view text;
};

// Each by file name.
std::span<const EmbeddedFile> EmbeddedRounds();      // packs (pack.h)
std::span<const EmbeddedFile> EmbeddedBenchmarks();  // see benchmarks/README.md

}  // namespace assay::rules

#endif  // COMMON_RULES_EMBEDDED_FILES_H_
