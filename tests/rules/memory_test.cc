// A log of any size is judged in the same memory.

#include <sys/resource.h>

#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "common/rules/check.h"
#include "common/rules/registry.h"
#include "tests/rules/sample_log.h"

namespace assay::rules {
namespace {

constexpr int64_t kBytes = int64_t{96} << 20;
constexpr int64_t kGrowthMax = int64_t{48} << 20;  // a line of 16 MiB is among them

// The most memory that this process ever had.
int64_t PeakBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} << 10;
}

// Lines that the check remembers something of: what fails, repeats, differs or asks for rules.
std::string HostilePiece(int number) {
  std::string piece;
  for (int i = 0; piece.size() < (256 << 10); ++i) {
    const std::string value = absl::StrCat(number, i);
    const char* const kKeys[] = {"seed",       "eval_error",     "global_batch_size",
                                 "init_start", "scheduler_type", "opt_name",
                                 "run_start",  "staging_start",  "train_loss"};
    const char* const key = kKeys[static_cast<size_t>(i) % std::size(kKeys)];
    absl::StrAppend(&piece, ":::MLLOG {\"time_ms\": ", i, ", \"key\": \"", key, "\", \"value\": \"",
                    value, "\", \"metadata\": {\"epoch_num\": ", i, "}}\n");
    absl::StrAppend(&piece, ":::MLLOG {\"time_ms\": ", i, ", \"key\": ", value, "\n");
    absl::StrAppend(&piece, "free text ", value, "\r");
  }
  return piece;
}

TEST(MemoryTest, DoesNotGrowWithTheLog) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the address sanitizer keeps freed memory";
#endif
  StreamChecker checker(*FindRuleSet("3.0.0"));
  checker.Add(testing::DeepcamLog().Text());
  int number = 0;
  int64_t sent = 0;
  const auto send = [&](int64_t bytes) {
    for (const int64_t end = sent + bytes; sent < end;) {
      const std::string piece = HostilePiece(++number);
      checker.Add(piece);
      sent += static_cast<int64_t>(piece.size());
    }
  };
  send(kBytes / 16);
  const int64_t before = PeakBytes();
  send(kBytes);
  // A record that never ends.
  checker.Add(":::MLLOG {");
  const std::string blanks(1 << 20, ' ');
  for (int i = 0; i < 64; ++i)
    checker.Add(blanks);
  const int64_t growth = PeakBytes() - before;
  const CheckResult result = checker.Finish();

  EXPECT_LT(growth, kGrowthMax);
  EXPECT_FALSE(result.pass);
  EXPECT_LT(result.findings.size(), 100u);
  std::cout << (sent >> 20) << " MiB judged, peak memory grew by " << (growth >> 10) << " KiB\n";
}

}  // namespace
}  // namespace assay::rules
