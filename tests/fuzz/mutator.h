// Changes texts in reproducible ways, with pieces that mean something to the parser under test.

#ifndef TESTS_FUZZ_MUTATOR_H_
#define TESTS_FUZZ_MUTATOR_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/file.h"
#include "common/log.h"
#include "common/random.h"

namespace assay::testing {

// `pieces` must outlive it.
class Mutator {
 public:
  Mutator(uint64_t seed, std::span<const absl::string_view> pieces)
      : stream_(seed, Purpose::kTest), pieces_(pieces) {}

  // `text` after a few edits, some of which take from `other`.
  std::string Mutate(std::string text, const std::string& other) {
    constexpr int kEditsMax = 6;
    const uint32_t edits = 1 + Below(kEditsMax);
    for (uint32_t i = 0; i < edits; ++i)
      Edit(&text, other);
    return text;
  }
  uint32_t Below(uint32_t bound) { return stream_.Below(index_++, bound); }
  const std::string& Pick(const std::vector<std::string>& corpus) {
    return corpus[Below(static_cast<uint32_t>(corpus.size()))];
  }

 private:
  void Edit(std::string* text, const std::string& other) {
    const size_t at = Below(static_cast<uint32_t>(text->size()) + 1);
    const size_t length = Below(40);
    switch (Below(5)) {
      case 0:
        text->erase(at, length);
        return;
      case 1:
        text->insert(at, std::string(pieces_[Below(static_cast<uint32_t>(pieces_.size()))]));
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
  const std::span<const absl::string_view> pieces_;
};

// The files of tests/fuzz/corpus/`name`.
inline std::vector<std::string> ReadCorpus(const std::string& name) {
  const std::string directory = "tests/fuzz/corpus/" + name;
  const absl::StatusOr<std::vector<std::string>> names = ListDirectory(directory);
  CHECK_OK(names.status());
  std::vector<std::string> corpus;
  for (const std::string& file : *names) {
    const absl::StatusOr<std::string> text = ReadFile(JoinPath(directory, file));
    CHECK_OK(text.status());
    corpus.push_back(*text);
  }
  return corpus;
}

}  // namespace assay::testing

#endif  // TESTS_FUZZ_MUTATOR_H_
