// The files of the built-in rounds, as text. Use FindRuleSet (registry.h) to get one.

#ifndef COMMON_RULES_EMBEDDED_ROUNDS_H_
#define COMMON_RULES_EMBEDDED_ROUNDS_H_

#include <span>

#include "absl/strings/string_view.h"

namespace assay::rules {

struct EmbeddedRound {
  absl::string_view file_name;  // "hpc-3.0.0.json"
  absl::string_view pack;       // of pack.h
};

// By file name.
std::span<const EmbeddedRound> EmbeddedRounds();

}  // namespace assay::rules

#endif  // COMMON_RULES_EMBEDDED_ROUNDS_H_
