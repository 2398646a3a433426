#include "worker/agent/cache_process.h"

#include <poll.h>

#include <cstdio>
#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/clock.h"
#include "common/file.h"
#include "tests/support/await.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/worker/cache/cached_dataset.h"
#include "worker/cache/node_cache.h"

namespace assay::agent {
namespace {

using ::testing::AllOf;
using testing::Await;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::TempDir;

class CacheProcessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    config_.set_data_directory(directory_.Path("data"));
    ASSERT_THAT(MakeDirectories(config_.data_directory()), IsOk());
    config_.set_run_user("root");
    config_.mutable_node_cache()->set_directory(directory_.Path("cache"));
    config_.mutable_node_cache()->set_quota_gb(1);
  }

  std::string OrderFor(v1::CacheOrder::Action action, int64_t number = 7) const {
    v1::CacheOrder order;
    order.set_number(number);
    order.set_action(action);
    order.set_dataset("small");
    order.set_path(path_);
    order.set_digest(digest_);
    return order.SerializeAsString();
  }
  static v1::CacheReport AwaitEnd(CacheProcess* process, int64_t number) {
    std::optional<CacheSeen> seen;
    EXPECT_TRUE(Await([&] { return (seen = process->TakeEnd()).has_value(); }));
    v1::CacheReport report;
    if (!seen.has_value()) return report;
    EXPECT_EQ(seen->number, number);
    EXPECT_TRUE(seen->is_done);
    EXPECT_TRUE(report.ParseFromString(seen->report));
    EXPECT_FALSE(process->TakeEnd().has_value()) << "once";
    EXPECT_EQ(process->exit_fd(), -1);
    return report;
  }
  v1::CacheReport Carry(v1::CacheOrder::Action action, const std::string& program = WORKER) {
    CacheProcess process(config_, program);
    process.Start(7, OrderFor(action));
    return AwaitEnd(&process, 7);
  }
  cache::NodeCache OpenCache() const {
    return *cache::NodeCache::Open({.directory = directory_.Path("cache"), .quota_bytes = 1 << 30});
  }
  std::string Files() const {
    return cache::NodeCache::FilesPath(directory_.Path("cache"), digest_);
  }

  const TempDir directory_;
  const cache::SmallDataset dataset_{"small", 40, 5000};
  std::string path_ = dataset_.path();
  std::string digest_ = dataset_.digest();
  v1::WorkerConfig config_;
};

TEST_F(CacheProcessTest, StagesAndEvictsAndSaysWhatTheCacheHas) {
  const v1::CacheReport staged = Carry(v1::CacheOrder::STAGE);
  EXPECT_EQ(staged.problem(), "");
  EXPECT_EQ(staged.files(), 41);
  EXPECT_EQ(staged.files_total(), 41);
  EXPECT_EQ(staged.bytes(), 200'000);
  ASSERT_EQ(staged.datasets_size(), 1);
  EXPECT_EQ(staged.datasets(0).digest(), digest_);
  EXPECT_EQ(staged.datasets(0).name(), "small");
  EXPECT_EQ(staged.datasets(0).bytes(), 200'000);
  EXPECT_EQ(DifferentFiles(dataset_, Files()), 0);

  CacheProcess process(config_, WORKER);
  process.LookIfDue(MonoTime{});
  EXPECT_EQ(AwaitEnd(&process, 0).datasets_size(), 1);
  process.LookIfDue(MonoTime{} + absl::Seconds(59));
  EXPECT_EQ(process.exit_fd(), -1) << "once a minute";

  const v1::CacheReport evicted = Carry(v1::CacheOrder::EVICT);
  EXPECT_EQ(evicted.problem(), "");
  EXPECT_EQ(evicted.datasets_size(), 0);
  EXPECT_FALSE(FileExists(Files()));
  EXPECT_EQ(Carry(v1::CacheOrder::EVICT).problem(), "") << "it is not there";
}

TEST_F(CacheProcessTest, WhatIsStoppedAnywhereGoesOn) {
  CacheProcess process(config_, WORKER);
  for (int patience_ms = 0; patience_ms < 60; patience_ms += 3) {
    process.Start(7, OrderFor(v1::CacheOrder::STAGE));
    pollfd entry{process.exit_fd(), POLLIN, 0};
    poll(&entry, 1, patience_ms);
    process.Stop();
    EXPECT_EQ(process.exit_fd(), -1);
    EXPECT_FALSE(process.TakeEnd().has_value()) << "a process that was stopped says nothing";
  }
  process.Start(7, OrderFor(v1::CacheOrder::STAGE));
  EXPECT_EQ(AwaitEnd(&process, 7).problem(), "");
  EXPECT_EQ(DifferentFiles(dataset_, Files()), 0);
}

TEST_F(CacheProcessTest, PinsWhatIsThereAndLetsItGo) {
  const v1::CacheReport early = Carry(v1::CacheOrder::PIN);
  EXPECT_THAT(early.problem(), HasSubstr("nothing to pin: stage it first"));
  EXPECT_FALSE(early.is_temporary());
  EXPECT_EQ(Carry(v1::CacheOrder::UNPIN).problem(), "") << "it is not there";
  ASSERT_EQ(Carry(v1::CacheOrder::STAGE).problem(), "");
  const v1::CacheReport pinned = Carry(v1::CacheOrder::PIN);
  EXPECT_EQ(pinned.problem(), "");
  EXPECT_TRUE(pinned.datasets(0).is_pinned());
  const v1::CacheReport evicted = Carry(v1::CacheOrder::EVICT);
  EXPECT_THAT(evicted.problem(), HasSubstr("unpin it first"));
  EXPECT_FALSE(evicted.is_temporary()) << "somebody has to decide";
  EXPECT_FALSE(Carry(v1::CacheOrder::UNPIN).datasets(0).is_pinned());
  EXPECT_EQ(Carry(v1::CacheOrder::EVICT).problem(), "");
}

TEST_F(CacheProcessTest, SaysWhatMayPassByItself) {
  const std::string away = path_ + ".away";
  ASSERT_EQ(rename(path_.c_str(), away.c_str()), 0);
  EXPECT_TRUE(Carry(v1::CacheOrder::STAGE).is_temporary()) << "its file system may come back";
  ASSERT_EQ(rename(away.c_str(), path_.c_str()), 0);
  const v1::CacheReport staged = Carry(v1::CacheOrder::STAGE);
  EXPECT_EQ(staged.problem(), "");
  EXPECT_FALSE(staged.is_temporary());
  {
    const absl::StatusOr<cache::Lease> run = OpenCache().Hold(digest_);
    ASSERT_THAT(run, IsOk());
    EXPECT_TRUE(Carry(v1::CacheOrder::STAGE).is_temporary());
    EXPECT_TRUE(Carry(v1::CacheOrder::EVICT).is_temporary());
  }
  EXPECT_TRUE(Carry(v1::CacheOrder::STAGE, "/bin/false").is_temporary());
  digest_ = std::string(64, 'a');
  EXPECT_FALSE(Carry(v1::CacheOrder::STAGE).is_temporary()) << "other files lie there";
  config_.clear_node_cache();
  EXPECT_FALSE(Carry(v1::CacheOrder::STAGE).is_temporary());
}

TEST_F(CacheProcessTest, EachFailureIsASentence) {
  digest_ = std::string(64, 'a');
  EXPECT_THAT(Carry(v1::CacheOrder::STAGE).problem(),
              AllOf(HasSubstr("on this node has digest"), HasSubstr("register the dataset anew")));
  digest_ = dataset_.digest();
  path_ = "/nowhere";
  EXPECT_THAT(Carry(v1::CacheOrder::STAGE).problem(), HasSubstr("/nowhere"));
  path_ = dataset_.path();
  {
    ASSERT_EQ(Carry(v1::CacheOrder::STAGE).problem(), "");
    const absl::StatusOr<cache::Lease> run = OpenCache().Hold(digest_);
    ASSERT_THAT(run, IsOk());
    EXPECT_THAT(Carry(v1::CacheOrder::STAGE).problem(), HasSubstr("held by a run"));
    EXPECT_THAT(Carry(v1::CacheOrder::EVICT).problem(), HasSubstr("held by a run"));
  }
  ASSERT_THAT(OpenCache().SetPinned(digest_, true), IsOk());
  EXPECT_THAT(Carry(v1::CacheOrder::EVICT).problem(), HasSubstr("unpin it first"));
  EXPECT_THAT(Carry(v1::CacheOrder::STAGE, "/nowhere").problem(), HasSubstr("could not start"));
  EXPECT_THAT(Carry(v1::CacheOrder::STAGE, "/bin/false").problem(), HasSubstr("has ended with 1"));
  config_.clear_node_cache();
  EXPECT_THAT(Carry(v1::CacheOrder::STAGE).problem(), HasSubstr("this node has no cache"));
}

}  // namespace
}  // namespace assay::agent
