#include "worker/agent/courier.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/clock.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/worker/agent/fake_coordinator.h"

namespace assay::agent {
namespace {

using testing::IsOk;
using testing::TempDir;

const RunKey kRun{"runs/r-1", 1};

class CourierTest : public ::testing::Test {
 protected:
  CourierTest() {
    spool_ = *EventSpool::Open(dir_.Path("spool"), nullptr);
    const Endpoint endpoint{.target = coordinator_.target()};
    stub_ = v1::WorkerService::NewStub(*MakeChannel(endpoint));
    courier_ = std::make_unique<Courier>(
        stub_.get(), endpoint, &clock_,
        Courier::Callbacks{
            .on_acked = [](const RunKey&, int64_t) {},
            .on_uploaded = [](const RunKey&, const UploadedFile&) {},
            .on_refused = [this](const RunKey&, const absl::Status& status) { Refuse(status); }});
  }
  void Refuse(const absl::Status& status) {
    coordinator_.With([&](FakeCoordinator::State*) { refusal_ = status; });
  }
  void Spool(int count) {
    for (int i = 0; i < count; ++i) {
      v1::RunEvent event;
      event.set_text(absl::StrCat("event ", spool_->last_seq() + 1));
      spool_->Append(std::move(event), {});
    }
    ASSERT_THAT(spool_->Sync(), IsOk());
    courier_->DeliverEvents(kRun, 0, spool_);
  }
  bool AwaitEvents(size_t count) {
    return coordinator_.Await([&](const FakeCoordinator::State& s) {
      const auto it = s.events.find(kRun.run);
      return it != s.events.end() && it->second.size() >= count;
    });
  }
  // Every event once, in order, unchanged.
  void ExpectAll(int count) {
    coordinator_.With([&](FakeCoordinator::State* s) {
      const std::vector<v1::RunEvent>& events = s->events[kRun.run];
      ASSERT_EQ(static_cast<int>(events.size()), count);
      for (int i = 1; i <= count; ++i) {
        EXPECT_EQ(events[static_cast<size_t>(i - 1)].seq(), i);
        EXPECT_EQ(events[static_cast<size_t>(i - 1)].text(), absl::StrCat("event ", i));
      }
    });
  }

  const TempDir dir_;
  const RealClock clock_;
  FakeCoordinator coordinator_;
  std::shared_ptr<EventSpool> spool_;
  std::unique_ptr<v1::WorkerService::Stub> stub_;
  absl::Status refusal_;
  std::unique_ptr<Courier> courier_;  // last: its thread uses all of the above
};

TEST_F(CourierTest, DeliversInOrderAndInBatches) {
  Spool(2500);
  ASSERT_TRUE(AwaitEvents(2500));
  Spool(3);
  ASSERT_TRUE(AwaitEvents(2503));
  ExpectAll(2503);
}

TEST_F(CourierTest, CarriesOnFromWhatTheCoordinatorHas) {
  coordinator_.With([](FakeCoordinator::State* s) {
    for (int i = 1; i <= 7; ++i) {
      v1::RunEvent event;
      event.set_seq(i);
      event.set_text(absl::StrCat("event ", i));
      s->events[kRun.run].push_back(event);
    }
  });
  Spool(10);
  ASSERT_TRUE(AwaitEvents(10));
  ExpectAll(10);
}

TEST_F(CourierTest, BrokenStreamsNeitherLoseNorRepeat) {
  for (const bool after_commit : {false, true}) {
    coordinator_.With([&](FakeCoordinator::State* s) {
      s->break_every = 2;
      s->is_broken_after_commit = after_commit;
    });
    const auto before = static_cast<size_t>(spool_->last_seq());
    Spool(4500);
    ASSERT_TRUE(AwaitEvents(before + 4500));
  }
  ExpectAll(9000);
}

TEST_F(CourierTest, OutlivesTheCoordinator) {
  Spool(5);
  ASSERT_TRUE(AwaitEvents(5));
  coordinator_.Stop();
  Spool(5);
  coordinator_.Start();
  ASSERT_TRUE(AwaitEvents(10));
  ExpectAll(10);
}

TEST_F(CourierTest, ARunTheCoordinatorDoesNotKnowIsGivenUp) {
  coordinator_.With([](FakeCoordinator::State* s) {
    s->refuse_events = grpc::Status(grpc::StatusCode::NOT_FOUND, "no such run");
  });
  Spool(5);
  EXPECT_TRUE(coordinator_.Await([this](const FakeCoordinator::State&) { return !refusal_.ok(); }));
}

TEST_F(CourierTest, AStaleGenerationIsGivenUpInTheEnd) {
  coordinator_.With([](FakeCoordinator::State* s) {
    s->refuse_events = grpc::Status(grpc::StatusCode::ABORTED, "generation 2 is current");
  });
  Spool(5);
  EXPECT_TRUE(coordinator_.Await([this](const FakeCoordinator::State&) { return !refusal_.ok(); }));
}

TEST_F(CourierTest, UploadsFilesOfAnySizeAndTriesAgain) {
  coordinator_.With([](FakeCoordinator::State* s) { s->failing_upload_count = 2; });
  std::string large;
  for (int i = 0; i < 300'000; ++i)
    large.push_back(static_cast<char>(i * 31 % 251));
  ASSERT_THAT(WriteFileAtomic(dir_.Path("large"), large), IsOk());
  ASSERT_THAT(WriteFileAtomic(dir_.Path("empty"), ""), IsOk());
  ASSERT_THAT(WriteFileAtomic(dir_.Path("exact"), std::string(64 << 10, 'x')), IsOk());

  courier_->DeliverFiles(
      kRun, {{"a", dir_.Path("large")}, {"b", dir_.Path("empty")}, {"c", dir_.Path("exact")}});

  ASSERT_TRUE(
      coordinator_.Await([](const FakeCoordinator::State& s) { return s.files.size() == 3; }));
  coordinator_.With([&](FakeCoordinator::State* s) {
    EXPECT_EQ(s->files["a"], large);
    EXPECT_EQ(s->files["b"], "");
    EXPECT_EQ(s->files["c"].size(), 64U << 10);
  });
}

}  // namespace
}  // namespace assay::agent
