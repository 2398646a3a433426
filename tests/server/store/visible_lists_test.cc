// What the reader's lists tell to whom.

#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "server/store/reader.h"
#include "server/store/store.h"
#include "tests/server/core/world.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::store {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::TempDir;
using core::RunId;
using core::SubmissionId;
using core::testing::SomeSpec;
using core::testing::World;

class VisibleListsTest : public ::testing::Test {
 protected:
  TempDir dir_;
  const std::string path_ = dir_.Path("assay.db");
  std::unique_ptr<Store> store_ = *Store::Open(path_);
  World world_{[this](const core::Outcome& outcome, const core::State& state) {
    CHECK_OK(store_->Commit(outcome, state));
  }};
};

// Entries are published at 0 (never), 1, 2 and 3: who asks sees what SightOf allows, in every list.
TEST_F(VisibleListsTest, ListsWhatTheViewerSees) {
  const std::string digest(64, 'c');
  int64_t published_at_us = 0;
  for (const char* organization : {"lab", "rival", "rival+lab", "rival"}) {
    core::ImportSubmission import{.spec = SomeSpec(), .source_path = absl::StrCat(published_at_us)};
    import.spec.organization = organization;
    import.score_minutes = 1.0;
    import.published_at_us = published_at_us++;
    import.runs.push_back({{"result_0.txt", digest, 9}, {}, "result_0.txt"});
    ASSERT_THAT(world_.Do(import), IsOk());
  }
  const auto reader = *Reader::Open(path_);
  struct Case {
    core::VisibleTo viewer;
    std::vector<int64_t> numbers;  // of submissions: each has the run of its number
  };
  const int64_t now_us = 2;
  for (const Case& c :
       {Case{{}, {}}, Case{{.sees_all = true}, {4, 3, 2, 1}}, Case{{.organization = "lab"}, {3, 1}},
        Case{{.organization = "lab", .sees_published = true, .now_us = now_us}, {3, 2, 1}},
        Case{{.sees_published = true, .now_us = now_us}, {3, 2}},
        Case{{.organization = "nobody", .now_us = now_us}, {}}}) {
    std::vector<int64_t> entries;
    const auto listed = reader->ListSubmissions({.viewer = c.viewer}, {});
    for (const core::Submission& entry : listed->items)
      entries.push_back(entry.id.number);
    std::vector<int64_t> runs;
    const auto listed_runs = reader->ListRuns({.viewer = c.viewer}, {});
    for (const core::SeenRun& seen : listed_runs->items)
      runs.push_back(seen.run.id.number);
    std::set<int64_t, std::greater<>> with_events;
    const auto events = reader->EventsAfter(c.viewer, {}, 0, 1000);
    for (const core::EventRow& row : *events)
      if (!row.submission.is_none()) with_events.insert(row.submission.number);
    EXPECT_EQ(entries, c.numbers);
    EXPECT_EQ(runs, c.numbers);
    EXPECT_EQ(std::vector<int64_t>(with_events.begin(), with_events.end()), c.numbers);
    EXPECT_EQ(*reader->CountSubmissions(c.viewer), std::ssize(c.numbers));
    for (int64_t id = 1; id <= 4; ++id) {
      const bool is_seen = absl::c_linear_search(c.numbers, id);
      EXPECT_EQ(core::MaySee(c.viewer, *reader->DisclosureOf(SubmissionId{id})), is_seen) << id;
      EXPECT_EQ(core::MaySee(c.viewer, *reader->DisclosureOf(RunId{id})), is_seen) << id;
      EXPECT_EQ(reader->EventsAfter(c.viewer, SubmissionId{id}, 0, 10)->empty(), !is_seen) << id;
      EXPECT_EQ(
          reader->ListRuns({.submission = SubmissionId{id}, .viewer = c.viewer}, {})->items.empty(),
          !is_seen)
          << id;
    }
    // All four hold the same bytes: they are found by the first that is seen.
    const auto artifact = reader->GetArtifact(c.viewer, digest);
    EXPECT_EQ(artifact.ok(), !c.numbers.empty());
    if (artifact.ok()) {
      EXPECT_EQ(artifact->submission.number, c.numbers.back());
    }
  }
}

}  // namespace
}  // namespace assay::store
