// What a step puts into a run's stage directory from its node's cache.

#include "worker/agent/stage_area.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/clock.h"
#include "common/dataset/manifest.h"
#include "common/file.h"
#include "common/process.h"
#include "common/sha256.h"
#include "tests/support/await.h"
#include "tests/support/status_matchers.h"
#include "tests/support/write_file.h"
#include "tests/worker/agent/step_fixture.h"
#include "worker/agent/cache_command.h"
#include "worker/agent/text_proto.h"

namespace assay::agent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::IsOkAndHolds;
using ::testing::StartsWith;
using testing::StatusIs;

class StageAreaTest : public StepFixture {
 protected:
  void SetUp() override {
    dataset::Manifest manifest = {.name = "small", .benchmark = "plain", .generator = "imported"};
    manifest.train_samples = 1;
    manifest.validation_samples = 1;
    for (const std::string& content : {std::string("train"), std::string("validation")})
      manifest.files.push_back({.path = absl::StrCat(content, "/a.bin"),
                                .bytes = static_cast<int64_t>(content.size()),
                                .sha256 = Sha256Hex(content)});
    ASSERT_THAT(dataset::SaveManifest(run_.dir.Path("dataset"), manifest), IsOk());
    run_.spec.mutable_dataset()->set_digest(dataset::DatasetDigest(manifest));
    run_.spec.mutable_dataset()->set_is_staged(true);
    run_.worker.mutable_node_cache()->set_directory(run_.dir.Path("cache"));
    run_.worker.mutable_node_cache()->set_quota_gb(1);
  }

  cache::NodeCache Cache() {
    absl::StatusOr<cache::NodeCache> cache = OpenNodeCache(run_.worker, *FindRunUser(run_.worker));
    CHECK_OK(cache.status());
    return *std::move(cache);
  }

  void Fill() { ASSERT_THAT(Cache().Stage(run_.dir.Path("dataset"), &clock_), IsOk()); }

  std::string Cached(const std::string& name) const {
    return JoinPath(CachedFilesOf(run_.spec, run_.worker), name);
  }

  const RealClock clock_{};
};

TEST_F(StageAreaTest, ARunWhoseStagingIsNotTimedStartsWithWhatTheCacheHas) {
  Fill();
  run_.Trainer(
      absl::StrCat("CACHE=$(field node_cache)\n"
                   "for f in train/a.bin validation/a.bin; do\n"
                   "  [ $STAGE/$f -ef $CACHE/$f ] || exit 3\ndone\n",
                   "exit 0"));

  EXPECT_EQ(Run().code, 0);

  EXPECT_THAT(ReadFile(directory_.CachesPath()),
              IsOkAndHolds(AllOf(HasSubstr("\"node_cache\": {\"files\": 2, \"bytes\": 15, "
                                           "\"checked_files\": 2"),
                                 HasSubstr("\"damaged\": []"))));
  EXPECT_THAT(ReadFile(Cached("train/a.bin")), IsOkAndHolds("train")) << "the cache keeps its own";
}

// Up to v2.0 staging is a part of the time, so nothing may have been copied before.
TEST_F(StageAreaTest, WhereStagingIsTimedTheCacheIsNotUsed) {
  Fill();
  run_.spec.set_is_staging_timed(true);
  run_.Trainer("[ -z \"$(field node_cache)\" ] || exit 3\n[ ! -e $STAGE/train/a.bin ]");

  EXPECT_EQ(Run().code, 0);

  EXPECT_THAT(ReadFile(directory_.CachesPath()), IsOkAndHolds(HasSubstr("\"node_cache\": null")));
}

TEST_F(StageAreaTest, ARunStartsWithoutWhatTheCacheHasNot) {
  run_.Trainer("[ -d $STAGE/train ] && [ ! -e $STAGE/train/a.bin ]");

  EXPECT_EQ(Run().code, 0);
}

TEST_F(StageAreaTest, ADamagedFileIsNotUsedAndIsNamed) {
  Fill();
  struct stat info {};
  const std::string victim = Cached("train/a.bin");
  ASSERT_EQ(stat(victim.c_str(), &info), 0);
  testing::WriteFile(victim, "trail");
  const timespec times[] = {info.st_atim, info.st_mtim};
  ASSERT_EQ(utimensat(AT_FDCWD, victim.c_str(), times, 0), 0);
  run_.Trainer("[ -e $STAGE/validation/a.bin ] && [ ! -e $STAGE/train/a.bin ]");

  EXPECT_EQ(Run().code, 0);

  EXPECT_THAT(ReadFile(directory_.CachesPath()),
              IsOkAndHolds(HasSubstr("\"damaged\": [\"train/a.bin\"]")));
}

TEST_F(StageAreaTest, WhatARunHasIsNotEvicted) {
  Fill();
  run_.Trainer(absl::StrCat("touch ", run_.dir.Path("started"), "\nwhile [ ! -e ",
                            run_.dir.Path("go"), " ]; do sleep 0.05; done"));
  const ProcessId step = Start();
  ASSERT_TRUE(testing::Await([&] { return FileExists(run_.dir.Path("started")); }));

  EXPECT_THAT(Cache().Evict(run_.spec.dataset().digest()),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("held by a run")));

  testing::WriteFile(run_.dir.Path("go"), "");
  EXPECT_EQ(Finish(step).code, 0);
  EXPECT_THAT(Cache().Evict(run_.spec.dataset().digest()), IsOk());
}

TEST_F(StageAreaTest, RanksOfAnotherAccountReadTheCacheAndCannotChangeIt) {
  if (geteuid() != 0) GTEST_SKIP() << "accounts are root's to choose";
  UseAccounts();
  Fill();
  run_.Trainer(
      "CACHE=$(field node_cache)\n"
      "[ $STAGE/train/a.bin -ef $CACHE/train/a.bin ] || exit 3\n"
      "cat $STAGE/train/a.bin > /dev/null || exit 4\n"
      "(echo x > $STAGE/train/a.bin) 2> /dev/null && exit 5\n"
      "(rm -f $CACHE/train/a.bin) 2> /dev/null && exit 6\n"
      "echo mine > $STAGE/train/b.bin || exit 7");

  EXPECT_EQ(Run().code, 0);

  EXPECT_THAT(ReadFile(Cached("train/a.bin")), IsOkAndHolds("train"));
}

TEST_F(StageAreaTest, TheCommandSaysWhatItDid) {
  v1::WorkerConfig config = run_.worker;
  config.set_server_address("unix:/run/assay/none.sock");
  const std::string path = run_.dir.Path("worker.textproto");
  ASSERT_THAT(StoreTextProto(path, config), IsOk());
  const auto run = [&](std::vector<std::string> arguments, int code) {
    std::ostringstream out;
    std::ostringstream error;
    arguments.push_back(absl::StrCat("--config=", path));
    EXPECT_EQ(RunCacheCommand(arguments, clock_, &out, &error), code) << error.str();
    return absl::StrCat(out.str(), error.str());
  };

  EXPECT_THAT(run({"stage", run_.dir.Path("dataset")}, 0), HasSubstr(": 2 files"));
  EXPECT_THAT(run({"stage", run_.dir.Path("dataset")}, 0), HasSubstr(", 2 (0.000 GB) were there"));
  EXPECT_THAT(run({"verify", "small"}, 0), HasSubstr("2 files (0.000 GB) read, 0 damaged"));
  EXPECT_EQ(run({"pin", "small"}, 0), "");
  EXPECT_THAT(run({"list"}, 0), HasSubstr("small (pinned)"));
  EXPECT_THAT(run({"list", "--json"}, 0), HasSubstr("\"is_pinned\": true"));
  EXPECT_THAT(run({"evict", "small"}, 1), HasSubstr("unpin it first"));
  EXPECT_EQ(run({"unpin", "small"}, 0), "");
  EXPECT_EQ(run({"evict", "small"}, 0), "");
  EXPECT_THAT(run({"evict", "small"}, 1), HasSubstr("no dataset \"small\""));
  EXPECT_THAT(run({"pin"}, 2), HasSubstr("pin what?"));
  EXPECT_THAT(run({"stage", "--help"}, 0), StartsWith("Usage: assay-worker cache stage DIR"));
}

}  // namespace
}  // namespace assay::agent
