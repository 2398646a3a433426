// What workers send of a run: events and artifacts.

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/core/core.h"
#include "server/core/decide.h"
#include "tests/server/core/world.h"
#include "tests/support/status_matchers.h"

namespace assay::core {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::StatusIs;
using core::testing::kInvalid;
using core::testing::SomeSpec;
using core::testing::World;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<RunEvent> Lines(int64_t first, int64_t last) {
  std::vector<RunEvent> events;
  for (int64_t seq = first; seq <= last; ++seq)
    events.push_back({.seq = seq, .text = absl::StrCat("line ", seq), .wall_us = seq});
  return events;
}

class EvidenceTest : public ::testing::Test {
 protected:
  EvidenceTest() {
    SubmissionSpec spec = SomeSpec();
    spec.node_count = 2;
    EXPECT_THAT(world_.Sync("w0"), IsOk());
    EXPECT_THAT(world_.Sync("w1"), IsOk());
    id_ = world_.Submit(spec);
  }

  absl::StatusOr<int64_t> Append(int32_t rank, std::vector<RunEvent> events,
                                 int64_t generation = 1) {
    const auto reply = world_.Do(
        AppendRunEvents{RunId{1}, generation, rank, std::move(events), absl::StrCat("w", rank)});
    if (!reply.ok()) return reply.status();
    return std::get<AppendReply>(*reply).durable_seq;
  }

  World world_;
  SubmissionId id_;
};

TEST_F(EvidenceTest, TakesEachEventOnce) {
  EXPECT_EQ(*Append(0, Lines(1, 3)), 3);
  EXPECT_EQ(world_.outcome().run_events[0].events.size(), 3u);
  EXPECT_EQ(*Append(0, Lines(1, 3)), 3);
  EXPECT_THAT(world_.outcome().run_events, IsEmpty());
  EXPECT_EQ(*Append(0, Lines(2, 5)), 5);
  const std::vector<RunEvent>& fresh = world_.outcome().run_events[0].events;
  ASSERT_EQ(fresh.size(), 2u);
  EXPECT_EQ(fresh[0].seq, 4);
  EXPECT_EQ(fresh[0].text, "line 4");
  EXPECT_EQ(fresh[0].order, 4);
  EXPECT_EQ(*Append(1, Lines(1, 1)), 1);
  EXPECT_EQ(world_.outcome().run_events[0].events[0].order, 6);
  EXPECT_EQ(world_.outcome().run_events[0].events[0].node_rank, 1);
  EXPECT_EQ(*Append(0, {}), 5) << "an empty batch asks how far it is";
}

TEST_F(EvidenceTest, RefusesGapsAndStrangers) {
  EXPECT_THAT(Append(0, Lines(2, 3)),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("continue at seq 1, not 2")));
  EXPECT_THAT(Append(0, Lines(1, 3), 2), StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(Append(2, Lines(1, 3)), StatusIs(kInvalid));
  EXPECT_THAT(Append(-1, Lines(1, 3)), StatusIs(kInvalid));
  EXPECT_THAT(Append(0, Lines(0, 3)), StatusIs(kInvalid));
  EXPECT_THAT(Append(0, {Lines(1, 1)[0], Lines(3, 3)[0]}), StatusIs(kInvalid));
  EXPECT_THAT(Append(0, Lines(1, 1001)), StatusIs(kInvalid, HasSubstr("1000")));
  EXPECT_THAT(world_.Do(AppendRunEvents{RunId{1}, 1, 0, Lines(1, 1), "w1"}),
              StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(world_.Do(AppendRunEvents{RunId{9}, 1, 0, Lines(1, 1), "w0"}),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(EvidenceTest, KeepsTheEarliestTouch) {
  std::vector<RunEvent> events = Lines(1, 2);
  events[1].kind = RunEventKind::kFirstTouch;
  events[1].is_attributed = true;
  events[1].wall_us = 500;
  ASSERT_THAT(Append(0, events), IsOk());
  events[1].wall_us = 300;

  ASSERT_THAT(Append(1, events), IsOk());

  EXPECT_EQ(world_.run(RunId{1}).first_touch->at_us, 300);
  EXPECT_EQ(world_.run(RunId{1}).first_touch->uncertainty_us, 50'000) << "no clock was measured";
}

TEST_F(EvidenceTest, KeepsWhatIsOnlyObservedApart) {
  std::vector<RunEvent> events = Lines(1, 2);
  for (RunEvent& event : events)
    event.kind = RunEventKind::kFirstTouch;
  events[0].wall_us = 300;
  events[1].wall_us = 500;
  events[1].is_attributed = true;

  ASSERT_THAT(Append(0, events), IsOk());

  EXPECT_EQ(world_.run(RunId{1}).observed_touch->at_us, 300);
  EXPECT_EQ(world_.run(RunId{1}).first_touch->at_us, 500);
}

TEST_F(EvidenceTest, PutsATouchOfAnotherNodeOnTheClockOfRankZero) {
  world_.clocks = {{"w0", {-2'000'000, 400}}, {"w1", {3'000'000, 250}}};
  std::vector<RunEvent> events = Lines(1, 1);
  events[0].kind = RunEventKind::kFirstTouch;
  events[0].is_attributed = true;
  events[0].wall_us = 9'000'000;
  world_.Executing("w1", RunId{1});
  ASSERT_THAT(Append(1, events), IsOk());

  world_.Executing("w0", RunId{1});

  EXPECT_EQ(world_.run(RunId{1}).first_touch->at_us, 4'000'000) << "w1 is 5 s ahead of w0";
  EXPECT_EQ(world_.run(RunId{1}).first_touch->uncertainty_us, 650);

  events[0].wall_us = 3'999'000;
  ASSERT_THAT(Append(0, events), IsOk());
  EXPECT_EQ(world_.run(RunId{1}).first_touch->at_us, 3'999'000);
  EXPECT_EQ(world_.run(RunId{1}).first_touch->uncertainty_us, 0) << "run_start's own clock";
}

TEST_F(EvidenceTest, TakesEvidenceOfARunThatHasLeftMemory) {
  ASSERT_THAT(world_.Do(CancelSubmission{id_, ""}), IsOk());
  const core::Run run = world_.run(RunId{1});
  ASSERT_THAT(world_.Sync("w0"), IsOk());
  ASSERT_THAT(world_.Sync("w1"), IsOk());
  ASSERT_THAT(world_.state().runs, IsEmpty());
  const Command late{"w0", AppendRunEvents{RunId{1}, 1, 0, Lines(1, 2), "w0"}};

  ASSERT_EQ(world_.core().Missing(late), Core::Target(RunId{1}));
  world_.core().Restore(run);
  EXPECT_EQ(*Append(0, Lines(1, 2)), 2);

  EXPECT_THAT(world_.state().runs, IsEmpty());
  EXPECT_EQ(world_.core().Missing({"", RecordArtifact{RunId{1}}}), Core::Target(RunId{1}));
  EXPECT_EQ(world_.core().Missing({"", RecordArtifact{RunId{99}}}), std::nullopt);
  EXPECT_EQ(world_.core().Missing({"", Tick{}}), std::nullopt);
}

TEST_F(EvidenceTest, RecordsArtifactsOnce) {
  const std::string digest(64, 'a');
  const RecordArtifact good{RunId{1}, 1, {"result_1.txt", digest, 10}, "w0"};

  ASSERT_THAT(world_.Do(good), IsOk());
  ASSERT_THAT(world_.Do(good), IsOk());
  EXPECT_EQ(world_.run(RunId{1}).artifacts.size(), 1u);

  RecordArtifact other = good;
  other.artifact.sha256 = std::string(64, 'b');
  EXPECT_THAT(world_.Do(other), StatusIs(absl::StatusCode::kAlreadyExists));
  other.worker = "w9";
  EXPECT_THAT(world_.Do(other), StatusIs(absl::StatusCode::kPermissionDenied));
  for (const ArtifactRef& bad : {ArtifactRef{"a/b", digest, 1}, ArtifactRef{"", digest, 1},
                                 ArtifactRef{"a", "xyz", 1}, ArtifactRef{"a", digest, -1}})
    EXPECT_THAT(world_.Do(RecordArtifact{RunId{1}, 1, bad, ""}), StatusIs(kInvalid));
}

// Each node leaves a file for each thing that it witnesses, and each rank what it printed.
TEST(LargeGangTest, EveryNodeLeavesItsFiles) {
  constexpr int kNodes = 128;
  constexpr int kFiles = 17;
  World world;
  SubmissionSpec spec = SomeSpec();
  spec.node_count = kNodes;
  for (int node = 0; node < kNodes; ++node)
    ASSERT_THAT(world.Sync(absl::StrCat("w", node)), IsOk());
  world.Submit(spec);
  for (int node = 0; node < kNodes; ++node)
    for (int file = 0; file < kFiles; ++file)
      ASSERT_THAT(
          world.Do(RecordArtifact{RunId{1},
                                  1,
                                  {absl::StrCat("file_", file, "_", node), std::string(64, 'a'), 1},
                                  absl::StrCat("w", node)}),
          IsOk());
  EXPECT_EQ(world.run(RunId{1}).artifacts.size(), kNodes * kFiles);
}

TEST_F(EvidenceTest, ARunHasSoManyArtifactsAndNotMore) {
  const auto record = [this](size_t i) {
    return world_.Do(
        RecordArtifact{RunId{1}, 1, {absl::StrCat("file_", i), std::string(64, 'a'), 1}, "w0"});
  };
  const size_t most = ArtifactCountMax(2);
  for (size_t i = 0; i < most; ++i)
    ASSERT_THAT(record(i), IsOk());
  EXPECT_THAT(record(most), StatusIs(absl::StatusCode::kResourceExhausted,
                                     HasSubstr(absl::StrCat("has ", most, " artifacts"))));
}

// A submission of two runs, of which the first has succeeded on w0: its evidence is sealed.
class SealedEvidenceTest : public ::testing::Test {
 protected:
  SealedEvidenceTest() {
    SubmissionSpec spec = SomeSpec();
    spec.run_count = 2;
    EXPECT_THAT(world_.Sync("w0"), IsOk());
    world_.Submit(spec);
    EXPECT_THAT(Append({Touch(1, 500)}), IsOk());
    EXPECT_THAT(world_.Do(RecordArtifact{RunId{1}, 1, kLog, "w0"}), IsOk());
    world_.Succeed(RunId{1});
  }

  static RunEvent Touch(int64_t seq, int64_t wall_us) {
    return {
        .seq = seq, .kind = RunEventKind::kFirstTouch, .wall_us = wall_us, .is_attributed = true};
  }
  absl::StatusOr<Reply> Append(std::vector<RunEvent> events) {
    return world_.Do(AppendRunEvents{RunId{1}, 1, 0, std::move(events), "w0"});
  }

  const ArtifactRef kLog{"result_1.txt", std::string(64, 'a'), 10};
  World world_;
};

TEST_F(SealedEvidenceTest, LateEventsAreAcknowledgedAndKeptButChangeNothing) {
  const core::Run judged = world_.run(RunId{1});

  const absl::StatusOr<Reply> reply = Append({Touch(2, 1)});

  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(std::get<AppendReply>(*reply).durable_seq, 2);
  ASSERT_EQ(world_.outcome().run_events.size(), 1u);
  EXPECT_TRUE(world_.outcome().run_events[0].events[0].is_late);
  core::Run run = world_.run(RunId{1});
  EXPECT_EQ(run.nodes[0].last_seq, 2);
  EXPECT_EQ(run.first_touch->at_us, 500);
  run.nodes[0].last_seq = judged.nodes[0].last_seq;
  EXPECT_EQ(run, judged);
}

TEST_F(SealedEvidenceTest, LateArtifactsAreKeptApartWhateverTheirName) {
  const core::Run judged = world_.run(RunId{1});
  const ArtifactRef forged{"result_1.txt", std::string(64, 'b'), 10};
  const ArtifactRef added{"evidence.txt", std::string(64, 'c'), 10};

  for (const ArtifactRef& late : {forged, added, forged})
    EXPECT_THAT(world_.Do(RecordArtifact{RunId{1}, 1, late, "w0"}), IsOk());
  EXPECT_THAT(world_.Do(RecordArtifact{RunId{1}, 1, kLog, "w0"}), IsOk()) << "known already";

  core::Run run = world_.run(RunId{1});
  EXPECT_THAT(run.late_artifacts, ::testing::ElementsAre(forged, added));
  run.late_artifacts.clear();
  EXPECT_EQ(run, judged);
}

TEST_F(SealedEvidenceTest, TheRestOfAGangIsHeardUntilItHasEndedToo) {
  World world;
  world.SubmitGang();
  world.Finished("w1", RunId{1}, 137);
  ASSERT_EQ(world.run(RunId{1}).state, RunState::kFailed);
  EXPECT_TRUE(IsSealed(world.run(RunId{1}), "w1"));
  EXPECT_FALSE(IsSealed(world.run(RunId{1}), "w0"));

  ASSERT_THAT(world.Do(AppendRunEvents{RunId{1}, 1, 0, {Touch(1, 7)}, "w0"}), IsOk());
  ASSERT_THAT(world.Do(AppendRunEvents{RunId{1}, 1, 1, {Touch(1, 5)}, "w1"}), IsOk());

  EXPECT_EQ(world.run(RunId{1}).first_touch->at_us, 7);
}

}  // namespace
}  // namespace assay::core
