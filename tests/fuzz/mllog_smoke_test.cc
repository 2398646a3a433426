// Mutates the kept corpus in a fixed number of reproducible ways; a broken property aborts. The
// libFuzzer target (preset fuzz) searches further from the same corpus.

#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/random.h"
#include "tests/fuzz/mllog_properties.h"

namespace assay::testing {
namespace {

constexpr uint64_t kSeed = 20201106;
constexpr int kMutants = 4000;
constexpr int kEditsMax = 6;

// Pieces that mean something to the parser.
constexpr absl::string_view kPieces[] = {
    ":::MLLOG ", "{",    "}",       "[",      "]",    "\"",   "\\u",  "\\ud83d", ",",    ":",
    "NaN",       "null", "-",       "1e999",  "\r",   "\n",   "\x85", "\x1c",    "true", "0.1",
    "\"key\":",  "[[",   "{\"a\":", "\"\\\"", "9999", "\xa0", "e",    "time_ms", "\t",   "\x01"};

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : stream_(seed, Purpose::kTest) {}

  std::string Mutate(std::string text, const std::string& other) {
    const uint32_t edits = 1 + Below(kEditsMax);
    for (uint32_t i = 0; i < edits; ++i)
      Edit(&text, other);
    return text;
  }
  uint32_t Below(uint32_t bound) { return stream_.Below(index_++, bound); }

 private:
  void Edit(std::string* text, const std::string& other) {
    const size_t at = Below(static_cast<uint32_t>(text->size()) + 1);
    const size_t length = Below(40);
    switch (Below(5)) {
      case 0:
        text->erase(at, length);
        return;
      case 1:
        text->insert(at, std::string(kPieces[Below(std::size(kPieces))]));
        return;
      case 2:
        if (at < text->size()) (*text)[at] = static_cast<char>(Below(256));
        return;
      case 3:
        text->insert(at, text->substr(at, length));
        return;
      default:
        text->insert(at, other.substr(Below(static_cast<uint32_t>(other.size()) + 1), length * 8));
        return;
    }
  }

  Stream stream_;
  uint64_t index_ = 0;
};

std::vector<std::string> Corpus() {
  const std::string directory = "tests/fuzz/corpus/mllog";
  const absl::StatusOr<std::vector<std::string>> names = ListDirectory(directory);
  CHECK_OK(names.status());
  std::vector<std::string> corpus;
  for (const std::string& name : *names) {
    const absl::StatusOr<std::string> text = ReadFile(JoinPath(directory, name));
    CHECK_OK(text.status());
    corpus.push_back(*text);
  }
  return corpus;
}

TEST(MllogSmokeTest, TheCorpusItselfHolds) {
  for (const std::string& text : Corpus())
    CheckMllogProperties(text);
}

TEST(MllogSmokeTest, MutantsOfTheCorpusHold) {
  const std::vector<std::string> corpus = Corpus();
  ASSERT_FALSE(corpus.empty());
  std::cout << "seed " << kSeed << "\n";
  Mutator mutator(kSeed);
  for (int i = 0; i < kMutants; ++i) {
    const std::string& text = corpus[mutator.Below(static_cast<uint32_t>(corpus.size()))];
    const std::string& other = corpus[mutator.Below(static_cast<uint32_t>(corpus.size()))];
    CheckMllogProperties(mutator.Mutate(text, other));
  }
}

TEST(MllogSmokeTest, DeepNestingHolds) {
  for (const absl::string_view piece : {"[", "{\"a\":", "[{\"a\":", "\"", "-"}) {
    std::string text = ":::MLLOG {\"time_ms\": 1, \"value\": ";
    for (int i = 0; i < 100000; ++i)
      absl::StrAppend(&text, piece);
    CheckMllogProperties(text);
  }
}

}  // namespace
}  // namespace assay::testing
