// The seed check of a set of runs (rules specification, section 4.4): every log names a seed, and
// no two logs name the same one from the same source line.

#ifndef COMMON_PACKAGE_SEEDS_H_
#define COMMON_PACKAGE_SEEDS_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

#include "common/json_value.h"
#include "common/rules/finding.h"

namespace assay::package {

struct SeedFinding {
  std::string file;
  rules::Finding finding;
};

// Takes the logs of one set, in the order of their paths. Not thread-safe.
class SeedCheck {
 public:
  void AddLog(const std::string& file, absl::string_view log_bytes);

  // As the official checker says; true of no logs.
  bool passed() const { return error_count_ == 0; }
  // Errors, and warnings about logs with several seeds. Of one log at most a few of a kind.
  const std::vector<SeedFinding>& findings() const { return findings_; }
  // The same for the set: each rule once, with the first log's finding and the number of logs.
  // `is_closed` and `is_weak` tell the set: the check is for the closed division, but equal seeds
  // are forbidden to open throughput sets too, and then are a warning.
  std::vector<SeedFinding> OfSet(bool is_closed, bool is_weak) const;

 private:
  struct Seed {
    int64_t line = 0;      // of the log
    std::string number;    // int(value), in decimal
    std::string source;    // "train.py:12"
    std::string identity;  // equal exactly if file, lineno and number are
  };
  struct LogSeeds {
    std::vector<Seed> seeds;
    int64_t bad_line = 0;      // of the first seed that cannot be read
    std::string bad_reason;    // not empty: there is one
    int64_t damaged_line = 0;  // of the first record that cannot be read; 0: none
  };
  static LogSeeds ReadSeeds(absl::string_view log_bytes);
  static bool AddSeed(int64_t line, const JsonValue& value, const JsonValue& metadata,
                      LogSeeds* log);
  void Compare(const std::string& file, const Seed& seed, int* shown);
  void Add(absl::string_view rule, const std::string& file, int64_t line, absl::string_view found);

  absl::flat_hash_map<std::string, std::string> first_file_;  // by identity
  std::vector<SeedFinding> findings_;
  int64_t error_count_ = 0;
};

}  // namespace assay::package

#endif  // COMMON_PACKAGE_SEEDS_H_
