// A hook that is told what happens while its coordinator is killed again and again.

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "common/file.h"
#include "tests/integration/service_fixture.h"
#include "tests/support/await.h"

namespace assay::testing {
namespace {

using ::testing::ElementsAreArray;
using ::testing::Not;

class NotifyTest : public ServiceTest {
 protected:
  void SetUp() override {
    ASSERT_THAT(deployment_.Start(Hook()), IsOk());
    root_.emplace(deployment_.Unix());
    AddTinyDataset(&*root_);
  }
  // One that writes down what it is told, unless there is a file "broken".
  std::string Hook() const {
    return absl::StrCat(
        "web_url: 'https://bench.example.org' notify { name: 'keeps' on: ['entry.*', 'run.*'] "
        "command: ['/bin/sh', '-c', 'test ! -e $0/broken && exec cat >> $0/told', '",
        deployment_.dir().path(), "'] }");
  }
  std::vector<nlohmann::json> Told() const {
    std::vector<nlohmann::json> told;
    const std::string text = ReadFile(deployment_.dir().Path("told")).value_or("");
    for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty()))
      told.push_back(nlohmann::json::parse(line, nullptr, false));
    return told;
  }
  // Each entry once, in the order in which its submission was told first.
  std::vector<std::string> Submitted() const {
    std::vector<std::string> ids;
    for (const nlohmann::json& one : Told()) {
      if (one.value("kind", "") != "entry.submitted") continue;
      const std::string id = one["entry"]["id"];
      if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
    }
    return ids;
  }

  void Restart() {
    deployment_.Kill();
    ASSERT_THAT(deployment_.Start(Hook()), IsOk());
    root_.emplace(deployment_.Unix());
  }
};

TEST_F(NotifyTest, WhatIsAcknowledgedIsToldThoughTheCoordinatorIsKilled) {
  constexpr int kKillCount = 20;
  std::vector<std::string> acknowledged;
  for (int i = 0; i < kKillCount; ++i) {
    for (int k = 0; k <= i % 3; ++k) {
      const auto entry = Create(&*root_, TinySpec("lab", 64));
      ASSERT_THAT(entry, IsOk());
      acknowledged.push_back(entry->name().substr(entry->name().find('/') + 1));
    }
    // At once, or while one of them is being told, or when all were.
    if (i % 2 == 1) {
      ASSERT_TRUE(Await([&] { return Submitted().size() + 1 >= acknowledged.size(); }));
    }
    Restart();
  }
  EXPECT_TRUE(Await([&] { return Submitted().size() >= acknowledged.size(); }));
  EXPECT_THAT(Submitted(), ElementsAreArray(acknowledged));
}

TEST_F(NotifyTest, WhatAHookCouldNotBeToldWaitsForItOverARestart) {
  ASSERT_THAT(WriteFileAtomic(deployment_.dir().Path("broken"), ""), IsOk());
  FakeWorker worker(deployment_.Worker("w0"), "w0");
  ASSERT_THAT(Create(&*root_, TinySpec("lab", 1)), IsOk());
  for (int i = 0; i < 3; ++i)
    ASSERT_THAT(worker.WalkOneRun(TinyLog()), IsOk());
  EXPECT_THAT(WatchToTheEnd(&*root_, "submissions/e-1"), Not(::testing::IsEmpty()));
  EXPECT_TRUE(deployment_.log().WaitFor("kind=entry.submitted attempt=1").has_value());
  EXPECT_THAT(deployment_.Terminate(), IsOkAndHolds(0));
  EXPECT_TRUE(Told().empty());

  ASSERT_THAT(RemoveTree(deployment_.dir().Path("broken")), IsOk());
  ASSERT_THAT(deployment_.Start(Hook()), IsOk());
  EXPECT_TRUE(Await([&] { return Told().size() == 6; }));
  std::vector<std::string> kinds;
  for (const nlohmann::json& one : Told())
    kinds.push_back(one.value("kind", "?"));
  EXPECT_THAT(kinds, ElementsAreArray({"entry.submitted", "entry.started", "run.succeeded",
                                       "run.succeeded", "run.succeeded", "entry.ended"}));
  const nlohmann::json end = Told().back();
  EXPECT_EQ(end["state"], "VALID");
  EXPECT_GT(end.value("score_minutes", 0.0), 0.0);
  EXPECT_EQ(end["url"], "https://bench.example.org/entries/e-1");
}

}  // namespace
}  // namespace assay::testing
