// Scrapes beside the work of all other threads; the thread sanitizer watches.

#include "server/metrics/figures.h"

#include <atomic>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/server/core/world.h"
#include "tests/server/metrics/series.h"
#include "tests/support/fake_clock.h"
#include "tests/support/temp_dir.h"

namespace assay::metrics {
namespace {

using ::assay::testing::TextOf;
using ::assay::testing::ValueOf;
using ::testing::Gt;
using ::testing::Optional;

constexpr char kMethod[] = "assay.v1.AdminService/ListTokens";

TEST(FiguresTest, ScrapesGoOnWhileTheCoreWorksAndCallsEnd) {
  const assay::testing::TempDir dir;
  assay::testing::FakeClock clock;
  core::testing::World world;
  world.Submit();
  Figures figures(&clock);
  figures.Open({.database_path = dir.Path("assay.db")},
               {.queue_length = [] { return size_t{17}; },
                .refused_calls = [] { return std::vector<std::pair<absl::StatusCode, int64_t>>{}; },
                .hooks = [] { return std::vector<HookView>{}; }});
  std::atomic<bool> is_over = false;
  std::atomic<int> turn_count = 0;
  std::thread core([&] {
    while (!is_over) {
      clock.Advance(absl::Seconds(1));
      figures.observer()->Committed({world.outcome(), world.state(), 1, absl::Milliseconds(1)});
      figures.observer()->CommitRefused(absl::ResourceExhaustedError("full"));
      figures.observer()->TurnEnded(world.core());
      ++turn_count;
    }
  });
  std::thread calls([&] {
    while (!is_over)
      figures.CallEnded(kMethod, absl::StatusCode::kOk);
  });
  for (int scrape_count = 0; scrape_count < 100 || turn_count < 100; ++scrape_count) {
    EXPECT_THAT(ValueOf(TextOf(figures.Collect()), "assay_command_queue_length"), Optional(17));
    std::this_thread::yield();
  }
  is_over = true;
  core.join();
  calls.join();

  const std::string text = TextOf(figures.Collect());
  EXPECT_THAT(ValueOf(text, "assay_runs{state=\"queued\"}"), Optional(1));
  EXPECT_THAT(ValueOf(text, "assay_submissions_created_total"), Optional(turn_count.load()));
  EXPECT_THAT(
      ValueOf(text, "assay_rpcs_total{code=\"OK\",method=\"" + std::string(kMethod) + "\"}"),
      Optional(Gt(0)));
}

}  // namespace
}  // namespace assay::metrics
