// Mutates a kept corpus in a fixed number of reproducible ways; a broken property aborts. The
// libFuzzer targets (preset fuzz) search further from the same corpora.

#ifndef TESTS_FUZZ_SMOKE_H_
#define TESTS_FUZZ_SMOKE_H_

#include <cstdint>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/log.h"
#include "tests/fuzz/mutator.h"

namespace assay::testing {

struct Smoke {
  uint64_t seed = 0;
  std::span<const absl::string_view> pieces;  // that mean something to the parser under test
  int mutant_count = 0;
};

// Every text of the corpus, and `mutant_count` that are made of two of them.
inline void MutateAll(const Smoke& smoke, const std::string& corpus_name,
                      void (*check)(absl::string_view)) {
  const std::vector<std::string> corpus = ReadCorpus(corpus_name);
  CHECK(!corpus.empty()) << "corpus=" << corpus_name;
  for (const std::string& text : corpus)
    check(text);
  std::cout << "seed " << smoke.seed << "\n";
  Mutator mutator(smoke.seed, smoke.pieces);
  for (int i = 0; i < smoke.mutant_count; ++i) {
    const std::string& text = mutator.Pick(corpus);
    check(mutator.Mutate(text, mutator.Pick(corpus)));
  }
}

}  // namespace assay::testing

#endif  // TESTS_FUZZ_SMOKE_H_
