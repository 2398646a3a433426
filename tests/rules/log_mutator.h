// Damages logs in the ways that loggers, file systems and people do, and in some that only enemies
// do. Reproducible: everything follows from the seed.

#ifndef TESTS_RULES_LOG_MUTATOR_H_
#define TESTS_RULES_LOG_MUTATOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/random.h"

namespace assay::testing {

class LogMutator {
 public:
  explicit LogMutator(uint64_t seed) : stream_(seed, Purpose::kTest) {}

  // `lines` after one to four random edits, as a file. `other` lends lines.
  std::string Mutate(std::vector<std::string> lines, const std::vector<std::string>& other);
  // What the last Mutate did, for a failed expectation.
  const std::string& story() const { return story_; }

  uint32_t Below(size_t bound);

 private:
  using Lines = std::vector<std::string>;

  void Edit(Lines* lines, const Lines& other);
  void EditOrder(Lines* lines, const Lines& other);
  void EditRecord(Lines* lines);
  void EditBytes(Lines* lines);
  // Replaces the JSON value of `member` in a line; false if the line has none.
  bool SetMember(std::string* line, absl::string_view member, const std::string& json);
  // A value that means something to some rule, or to a JSON reader.
  std::string Value();
  std::string Metadata();
  std::string Time(const std::string& line);
  void Note(absl::string_view what, size_t line);

  Stream stream_;
  uint64_t index_ = 0;
  std::string story_;
};

}  // namespace assay::testing

#endif  // TESTS_RULES_LOG_MUTATOR_H_
