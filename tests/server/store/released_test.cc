// Databases as programs of former schemas have left them open, with the same story each: an entry
// of three runs that was judged INVALID (two epochs do not converge), and one that was cancelled
// while it ran. released/README.md says how they were made.

#include <zlib.h>

#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/log.h"
#include "server/store/reader.h"
#include "server/store/store.h"
#include "server/store/verify.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::store {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::TempDir;
using core::RunId;
using core::SubmissionId;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// Through zlib, which reads what is not compressed as it is.
std::string Unpacked(const std::string& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), &gzclose);
  CHECK(file != nullptr) << path;
  std::string content(int64_t{16} << 20, '\0');
  const int count = gzread(file.get(), content.data(), static_cast<unsigned>(content.size()));
  CHECK(count > 0) << path;
  content.resize(static_cast<size_t>(count));
  return content;
}

class ReleasedTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    CHECK_OK(MakeDirectories(dir_.Path("data")));
    const std::string kept = absl::StrCat("tests/server/store/released/schema_", GetParam());
    CHECK_OK(WriteFileAtomic(path_, Unpacked(kept + ".db.gz"), kPrivateFile));
    const std::string mark = kept + ".mark.gz";
    if (FileExists(mark))
      CHECK_OK(WriteFileAtomic(dir_.Path("data/mark"), Unpacked(mark), kPrivateFile));
  }

  const TempDir dir_;
  const std::string path_ = dir_.Path("data/assay.db");
};

TEST_P(ReleasedTest, OpensAndTellsTheSameStory) {
  const auto store = Store::Open(path_);
  ASSERT_THAT(store, IsOk());
  const auto state = (*store)->Load();
  ASSERT_THAT(state, IsOk());
  EXPECT_TRUE(state->submissions.empty()) << "both have ended";
  EXPECT_EQ(state->workers.count("w0"), 1u);
  for (const auto& [key, request] : state->requests)
    EXPECT_GT(request.at_us, 0) << key.request_id << " would be forgotten at once";
  EXPECT_EQ(state->datasets.count("cosmo32"), 1u);

  const auto reader = Reader::Open(path_);
  ASSERT_THAT(reader, IsOk());
  const auto judged = (*reader)->GetSubmission(SubmissionId{1});
  ASSERT_THAT(judged, IsOk());
  EXPECT_EQ(judged->state, core::SubmissionState::kInvalid);
  EXPECT_THAT(judged->state_reason, HasSubstr("3 runs failed the check"));
  EXPECT_EQ(judged->spec.round, "cosmoflow-mini");
  EXPECT_EQ(judged->rules.digest.size(), 64u);
  // What these schemas keep in members of their own.
  EXPECT_EQ(core::BackendOf(judged->spec.workload), "onednn");
  EXPECT_THAT(judged->rules.fixed,
              UnorderedElementsAre(Pair("kernel_size", "3"), Pair("first_epoch_number", "1")));
  EXPECT_THAT(state->datasets.at("cosmo32").parameters,
              UnorderedElementsAre(Pair("cube_edge", "32")));
  EXPECT_EQ((*reader)->GetSubmission(SubmissionId{2})->state, core::SubmissionState::kCancelled);

  for (int64_t id = 1; id <= 3; ++id) {
    const auto run = (*reader)->GetRun(RunId{id});
    ASSERT_THAT(run, IsOk());
    EXPECT_EQ(run->state, core::RunState::kSucceeded);
    ASSERT_TRUE(run->first_touch.has_value());
    ASSERT_TRUE(run->facts.run_start_ms.has_value());
    EXPECT_GE(run->first_touch->at_us / 1000, *run->facts.run_start_ms - 1);
    EXPECT_EQ(run->facts.is_converged, false);
    const auto lines = (*reader)->RunEventsAfter(RunId{id}, 0, 0, 1000);
    ASSERT_THAT(lines, IsOk());
    EXPECT_GT(lines->size(), 50u);
    EXPECT_TRUE(absl::StartsWith(lines->front().text, ":::MLLOG {"));
  }
}

// Nothing but the artifacts, which were not kept with the database.
TEST_P(ReleasedTest, IsWholeAfterItsMigration) {
  ASSERT_THAT(Store::Open(path_), IsOk());
  Verify(dir_.Path("data"), [](const core::StoredFault& fault) {
    EXPECT_THAT(fault.object, HasSubstr("artifact")) << fault.file << " " << fault.problem;
  });
}

INSTANTIATE_TEST_SUITE_P(Schemas, ReleasedTest, ::testing::Values(3, 7, 8));

}  // namespace
}  // namespace assay::store
