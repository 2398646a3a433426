#include "common/rules/run_clocks.h"

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace assay::rules {
namespace {

constexpr int64_t kStartMs = 1'704'067'200'000;
constexpr int64_t kNodeNs = 40'000'000'000;

// Three milliseconds after its stamp.
Arrival StartArrival(int64_t wall_ahead_ms = 0) {
  return {.record = {"run_start", 7, static_cast<double>(kStartMs)},
          .wall_us = (kStartMs + wall_ahead_ms + 3) * 1000,
          .mono_ns = kNodeNs + 3'000'000,
          .raw_ns = kNodeNs + 3'000'000,
          .boot_ns = kNodeNs + 3'000'000};
}

TEST(RunClocksTest, RunStartIsWhereItsStampIsOnTheNodesClock) {
  EXPECT_EQ(LogStartOf(kStartMs, {StartArrival()})->node_ns, kNodeNs);
  EXPECT_FALSE(LogStartOf(kStartMs + 1, {StartArrival()}).has_value()) << "of another record";
  EXPECT_FALSE(LogStartOf(kStartMs, {}).has_value());
}

// Set in between, or the stamp of a program whose own clock is wrong.
TEST(RunClocksTest, AStampThatIsWrongIsWhereItCame) {
  for (const int64_t ahead_ms : {30'000, -30'000})
    EXPECT_EQ(LogStartOf(kStartMs, {StartArrival(ahead_ms)})->node_ns, kNodeNs + 3'000'000);
}

TEST(RunClocksTest, ClocksThatNoMachineShowsAreNoStart) {
  for (const int64_t at_ns : {std::numeric_limits<int64_t>::max(), int64_t{-1}}) {
    Arrival arrival = StartArrival();
    arrival.boot_ns = at_ns;
    EXPECT_FALSE(LogStartOf(kStartMs, {arrival}).has_value());
  }
  Arrival arrival = StartArrival();
  arrival.record.time_ms = 9e18;
  EXPECT_FALSE(LogStartOf(9'000'000'000'000'000'000, {arrival}).has_value());
}

TEST(RunClocksTest, ANodeWithoutItsFileIsNotKnown) {
  std::map<std::string, std::string> files = {
      {"arrivals.jsonl",
       R"({"key": "run_start", "line": 7, "time_ms": 1704067200000, "wall_us": 1704067200003000,)"
       R"( "mono_ns": 40003000000, "raw_ns": 40003000000, "boot_ns": 40003000000})"},
      {"offsets.jsonl", ClockSampleText({.boot_id = "b", .node_ns = 5, .uncertainty_us = 1})},
      {"offsets_2.jsonl", ClockSampleText({.boot_id = "b", .node_ns = 6, .uncertainty_us = 1})}};
  const RunClocks::ReadFile read = [&files](const std::string& name) -> std::optional<std::string> {
    const auto found = files.find(name);
    return found == files.end() ? std::nullopt : std::optional(found->second);
  };

  const RunClocks clocks(kStartMs, read);
  EXPECT_TRUE(clocks.Of(0).has_value());
  EXPECT_FALSE(clocks.Of(1).has_value());
  EXPECT_TRUE(clocks.Of(2).has_value());

  EXPECT_FALSE(RunClocks(std::nullopt, read).Of(2).has_value()) << "it has not begun";
  files.erase("arrivals.jsonl");
  EXPECT_FALSE(RunClocks(kStartMs, read).Of(0).has_value()) << "of an agent of before";
}

}  // namespace
}  // namespace assay::rules
