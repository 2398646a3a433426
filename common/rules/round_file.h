// The keys of a facility's round file (facility_round.h) and what they mean: reading the file and
// its reference page (assay help round, assay-round(5)) are made from this table.

#ifndef COMMON_RULES_ROUND_FILE_H_
#define COMMON_RULES_ROUND_FILE_H_

#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace assay::rules {

struct RoundFileKey {
  const char* table;  // "round", "benchmark", "rule"
  const char* name;
  const char* example;
  const char* help;
};
std::span<const RoundFileKey> RoundFileKeys();

// The tables of the file, and the keys of one.
std::vector<std::string> RoundFileTables();
std::vector<std::string> RoundFileKeysOf(absl::string_view table);

}  // namespace assay::rules

#endif  // COMMON_RULES_ROUND_FILE_H_
