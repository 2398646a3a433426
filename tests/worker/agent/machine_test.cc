#include "worker/agent/machine.h"

#include <iterator>
#include <ostream>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/random.h"

namespace assay::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const RunKey kA1{"runs/a", 1};
const RunKey kA2{"runs/a", 2};
const RunKey kB1{"runs/b", 1};

std::string Text(const RunKey& key) {
  return absl::StrCat(key.run, "-g", key.generation);
}

std::string Text(const Status& status) {
  std::string text;
  switch (status.phase) {
    case Phase::kIdle:
      text = "idle";
      break;
    case Phase::kExecuting:
      text = "executing " + Text(status.key);
      if (status.has_leave_to_start) {
        text += " with leave";
      } else if (status.is_ready) {
        text += " ready";
      }
      break;
    case Phase::kFinished:
      text = absl::StrCat("finished ", Text(status.key), " code ", status.exit.code, " files ",
                          status.artifacts.size());
      break;
  }
  if (status.check != 0)
    text += absl::StrCat(" check ", status.check, " ", status.check_result.value_or("goes on"));
  if (status.cache_order != 0)
    text +=
        absl::StrCat(" cache ", status.cache_order, status.is_cache_done ? " done" : " goes on");
  return status.is_leaving ? text + " leaving" : text;
}

struct Namer {
  std::string operator()(const StartStep& a) const { return "start " + Text(a.key); }
  std::string operator()(const StopStep& a) const { return "stop " + Text(a.key); }
  std::string operator()(const GiveLeave& a) const { return "leave " + Text(a.key); }
  std::string operator()(const Synchronize& a) const { return "sync " + Text(a.status); }
  std::string operator()(const StartCheck& a) const { return absl::StrCat("check ", a.number); }
  std::string operator()(const StopCheck&) const { return "stop check"; }
  std::string operator()(const StartCaching& a) const { return absl::StrCat("cache ", a.number); }
  std::string operator()(const StopCaching&) const { return "stop cache"; }
  std::string operator()(const SendEvents& a) const {
    return absl::StrCat("send ", Text(a.key), " ", a.first_seq, "-", a.last_seq);
  }
  std::string operator()(const UploadArtifacts& a) const {
    return absl::StrCat("upload ", Text(a.key), " ", absl::StrJoin(a.file_names, ","));
  }
  std::string operator()(const ForgetRun& a) const { return "forget " + Text(a.key); }
};

// A machine and what it did at the last input, in words.
struct Agent {
  MachineState state;

  std::vector<std::string> On(const Input& input) {
    std::vector<std::string> names;
    for (const Action& action : Advance(input, &state))
      names.push_back(std::visit(Namer(), action));
    return names;
  }
  std::vector<std::string> Told(Order order, const RunKey& key = {}) {
    return On(SyncReply{Desired{order, key, "spec"}});
  }
  std::vector<std::string> ToldToCache(int64_t number, Order order = Order::kIdle,
                                       const RunKey& key = {}) {
    return On(SyncReply{
        Desired{.order = order, .key = key, .cache_order = number, .cache_spec = "spec"}});
  }
  // The run is given, its step starts.
  void Execute(const RunKey& key) {
    Told(Order::kExecute, key);
    On(RunObserved{.key = key, .is_started = true});
  }
  std::vector<std::string> Ended(const RunKey& key, int64_t seq, int code = 0) {
    return On(RunObserved{.key = key,
                          .is_started = true,
                          .spooled_seq = seq,
                          .exit = StepExit{code, "ended"},
                          .is_spool_complete = true,
                          .artifacts = {"result_1.txt", "touch_0.json"}});
  }
  std::vector<std::string> Uploaded(const RunKey& key, const std::string& name) {
    return On(ArtifactUploaded{key, UploadedFile{name, "digest", 5}});
  }
};

TEST(MachineTest, AsksWhatToDoAtTheStartAndAgainAfterAFailure) {
  Agent agent;
  EXPECT_THAT(agent.On(SyncFailed{}), ElementsAre("sync idle"));
  EXPECT_THAT(agent.On(SyncFailed{}), ElementsAre("sync idle"));
  EXPECT_THAT(agent.Told(Order::kIdle), ElementsAre("sync idle"));
}

TEST(MachineTest, CarriesOneRunFromItsOrderToForgetting) {
  Agent agent;

  EXPECT_THAT(agent.Told(Order::kExecute, kA1),
              ElementsAre("start runs/a-g1", "sync executing runs/a-g1"));
  EXPECT_THAT(agent.On(RunObserved{.key = kA1, .is_started = true, .spooled_seq = 3}),
              ElementsAre("send runs/a-g1 1-3"));
  EXPECT_THAT(agent.On(EventsAcked{kA1, 3}), IsEmpty());
  EXPECT_THAT(agent.Told(Order::kExecute, kA1), ElementsAre("sync executing runs/a-g1"));
  EXPECT_THAT(agent.Ended(kA1, 4),
              ElementsAre("send runs/a-g1 4-4", "upload runs/a-g1 result_1.txt,touch_0.json"));
  EXPECT_THAT(agent.Uploaded(kA1, "result_1.txt"), IsEmpty());
  EXPECT_THAT(agent.Uploaded(kA1, "touch_0.json"), IsEmpty());
  EXPECT_THAT(agent.On(EventsAcked{kA1, 4}), ElementsAre("sync finished runs/a-g1 code 0 files 2"));
  EXPECT_THAT(agent.Told(Order::kForget, kA1), ElementsAre("forget runs/a-g1", "sync idle"));
}

TEST(MachineTest, SaysThatItsStepIsReadyAndPassesTheLeaveOn) {
  Agent agent;
  agent.Execute(kA1);
  EXPECT_THAT(agent.On(RunObserved{.key = kA1, .is_started = true, .is_ready = true}),
              ElementsAre("sync executing runs/a-g1 ready"));
  EXPECT_THAT(agent.Told(Order::kExecute, kA1), ElementsAre("sync executing runs/a-g1 ready"));

  const SyncReply leave{Desired{Order::kExecute, kA1, "spec", /*may_start=*/true}};
  EXPECT_THAT(agent.On(leave),
              ElementsAre("leave runs/a-g1", "sync executing runs/a-g1 with leave"));
  EXPECT_THAT(agent.On(leave), ElementsAre("sync executing runs/a-g1 with leave"));
  EXPECT_THAT(agent.On(Tick{}), ElementsAre("leave runs/a-g1")) << "the disk may have been full";
}

TEST(MachineTest, IsFinishedOnlyWhenEventsAndFilesAreDelivered) {
  struct Case {
    const char* name;
    int64_t acked;
    std::vector<std::string> uploaded;
    Phase phase;
  };
  const std::vector<Case> cases = {
      {"nothing", 0, {}, Phase::kExecuting},
      {"events only", 9, {}, Phase::kExecuting},
      {"one event missing", 8, {"result_1.txt", "touch_0.json"}, Phase::kExecuting},
      {"one file missing", 9, {"result_1.txt"}, Phase::kExecuting},
      {"all", 9, {"result_1.txt", "touch_0.json"}, Phase::kFinished},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    Agent agent;
    agent.Execute(kA1);
    agent.Ended(kA1, 9);
    agent.On(EventsAcked{kA1, c.acked});
    for (const std::string& name : c.uploaded)
      agent.Uploaded(kA1, name);
    EXPECT_EQ(StatusOf(agent.state).phase, c.phase);
  }
}

TEST(MachineTest, NeverStartsAGenerationTwice) {
  Agent agent;
  agent.Execute(kA1);
  agent.Ended(kA1, 0);
  EXPECT_THAT(agent.Told(Order::kExecute, kA1), ElementsAre("sync executing runs/a-g1"));

  agent.Told(Order::kForget, kA1);

  EXPECT_THAT(agent.Told(Order::kExecute, kA1), ElementsAre("sync idle"));
}

TEST(MachineTest, NeverStartsAnOlderGeneration) {
  Agent agent;
  agent.Execute(kA2);
  agent.Ended(kA2, 0);
  agent.Told(Order::kForget, kA2);

  EXPECT_THAT(agent.Told(Order::kExecute, kA1), ElementsAre("sync idle"));
}

TEST(MachineTest, StopsTheOldRunBeforeItStartsAnother) {
  Agent agent;
  agent.Execute(kA1);

  EXPECT_THAT(agent.Told(Order::kExecute, kB1),
              ElementsAre("stop runs/a-g1", "sync executing runs/a-g1"));
  agent.Ended(kA1, 2, 9);
  EXPECT_THAT(agent.Told(Order::kExecute, kB1),
              ElementsAre("start runs/b-g1", "sync executing runs/b-g1"));
}

TEST(MachineTest, StopsAnOlderGenerationBeforeItStartsTheNewer) {
  Agent agent;
  agent.Execute(kA1);

  EXPECT_THAT(agent.Told(Order::kExecute, kA2),
              ElementsAre("stop runs/a-g1", "sync executing runs/a-g1"));
  agent.Ended(kA1, 2, 9);
  EXPECT_THAT(agent.Told(Order::kExecute, kA2),
              ElementsAre("start runs/a-g2", "sync executing runs/a-g2"));
}

TEST(MachineTest, DeliversAnEndedRunWhileAnotherExecutes) {
  Agent agent;
  agent.Execute(kA1);
  agent.Ended(kA1, 2);
  agent.Execute(kB1);

  EXPECT_THAT(agent.On(Tick{}),
              ElementsAre("send runs/a-g1 1-2", "upload runs/a-g1 result_1.txt,touch_0.json"));
  agent.On(EventsAcked{kA1, 2});
  agent.Uploaded(kA1, "result_1.txt");
  agent.Uploaded(kA1, "touch_0.json");
  EXPECT_EQ(Text(StatusOf(agent.state)), "executing runs/b-g1");

  agent.Ended(kB1, 0);
  EXPECT_EQ(Text(StatusOf(agent.state)), "finished runs/a-g1 code 0 files 2");
}

TEST(MachineTest, AnOrderToStopIsRepeatedUntilTheStepHasEnded) {
  for (const Order order : {Order::kStop, Order::kIdle}) {
    Agent agent;
    agent.Execute(kA1);
    EXPECT_THAT(agent.Told(order, kA1), ElementsAre("stop runs/a-g1", "sync executing runs/a-g1"));
    EXPECT_THAT(agent.On(Tick{}), ElementsAre("stop runs/a-g1"));
    EXPECT_THAT(agent.Told(Order::kExecute, kA1), ElementsAre("sync executing runs/a-g1"));
    agent.Ended(kA1, 0, 9);
    EXPECT_THAT(agent.Told(order, kA1), ElementsAre("sync executing runs/a-g1"));
  }
}

TEST(MachineTest, ForgetsARunThatStillExecutesOnceItHasEnded) {
  Agent agent;
  agent.Execute(kA1);
  EXPECT_THAT(agent.Told(Order::kForget, kA1),
              ElementsAre("stop runs/a-g1", "sync executing runs/a-g1"));
  EXPECT_THAT(agent.Ended(kA1, 5, 9), ElementsAre("forget runs/a-g1", "sync idle"));
}

TEST(MachineTest, ATickAsksAgainForWhatMayHaveBeenLost) {
  Agent agent;
  agent.Execute(kA1);
  agent.On(RunObserved{.key = kA1, .is_started = true, .spooled_seq = 7});
  agent.On(EventsAcked{kA1, 5});
  EXPECT_THAT(agent.On(Tick{}), ElementsAre("send runs/a-g1 6-7"));
  EXPECT_THAT(agent.On(EventsAcked{kA1, 3}), IsEmpty());  // an old acknowledgement
  EXPECT_THAT(agent.On(Tick{}), ElementsAre("send runs/a-g1 6-7"));
}

TEST(MachineTest, AfterARestartItCarriesOnWithTheStepItFinds) {
  std::map<RunKey, HeldRun> runs;
  runs[kA1] = HeldRun{.is_started = true, .spooled_seq = 4};
  Agent agent{Restore(std::move(runs), {})};

  EXPECT_THAT(agent.On(SyncFailed{}), ElementsAre("sync executing runs/a-g1"));
  EXPECT_THAT(agent.Told(Order::kExecute, kA1), ElementsAre("sync executing runs/a-g1"));
  EXPECT_THAT(agent.On(Tick{}), ElementsAre("send runs/a-g1 1-4"));
}

TEST(MachineTest, AfterARestartAStepThatNeverStartedIsStartedOnlyIfStillWanted) {
  std::map<RunKey, HeldRun> runs;
  runs[kA1] = HeldRun{};
  Agent wanted{Restore(runs, {})};
  Agent unwanted{Restore(runs, {})};

  EXPECT_THAT(wanted.Told(Order::kExecute, kA1),
              ElementsAre("start runs/a-g1", "sync executing runs/a-g1"));
  EXPECT_THAT(unwanted.Told(Order::kIdle),
              ElementsAre("stop runs/a-g1", "sync executing runs/a-g1"));
}

TEST(MachineTest, FencesOutliveARestart) {
  Agent agent{Restore({}, {{"runs/a", 2}})};
  EXPECT_THAT(agent.Told(Order::kExecute, kA2), ElementsAre("sync idle"));
  EXPECT_THAT(agent.Told(Order::kExecute, {"runs/a", 3}),
              ElementsAre("start runs/a-g3", "sync executing runs/a-g3"));
}

TEST(MachineTest, ARefusedRunIsFinishedWithoutDelivery) {
  Agent agent;
  agent.Execute(kA1);
  agent.Ended(kA1, 5);
  EXPECT_THAT(agent.On(DeliveryRefused{kA1}),
              ElementsAre("sync finished runs/a-g1 code 0 files 0"));
  EXPECT_THAT(agent.On(Tick{}), IsEmpty());
}

TEST(MachineTest, LeavingKeepsTheStepAndTakesNoNewRun) {
  Agent agent;
  agent.Execute(kA1);
  EXPECT_THAT(agent.On(LeaveRequested{}), ElementsAre("sync executing runs/a-g1 leaving"));
  agent.Ended(kA1, 0);
  EXPECT_THAT(agent.Told(Order::kExecute, kB1), ElementsAre("sync executing runs/a-g1 leaving"));
}

TEST(MachineTest, TheEndOfARunIsAwaitedUntilItIsDelivered) {
  Agent agent;
  agent.Execute(kA1);
  EXPECT_TRUE(IsExecuting(agent.state));
  EXPECT_FALSE(IsEnding(agent.state));
  agent.On(RunObserved{.key = kA1, .is_started = true, .is_stopping = true});
  EXPECT_FALSE(IsExecuting(agent.state));
  EXPECT_TRUE(IsEnding(agent.state));
  agent.Ended(kA1, 2, 9);
  EXPECT_TRUE(IsEnding(agent.state));
  agent.On(EventsAcked{kA1, 2});
  agent.Uploaded(kA1, "result_1.txt");
  EXPECT_TRUE(IsEnding(agent.state));
  agent.Uploaded(kA1, "touch_0.json");
  EXPECT_FALSE(IsExecuting(agent.state));
  EXPECT_FALSE(IsEnding(agent.state));
}

TEST(MachineTest, ChecksItsNodeOnceAndSaysWhatCameOfIt) {
  Agent agent;
  EXPECT_THAT(agent.Told(Order::kCheck, {"", 7}),
              ElementsAre("check 7", "sync idle check 7 goes on"));
  EXPECT_THAT(agent.Told(Order::kCheck, {"", 7}), ElementsAre("sync idle check 7 goes on"));
  EXPECT_THAT(agent.On(CheckEnded{6, "old"}), IsEmpty());
  EXPECT_THAT(agent.On(CheckEnded{7, "good"}), ElementsAre("sync idle check 7 good"));
  EXPECT_THAT(agent.Told(Order::kCheck, {"", 7}), ElementsAre("sync idle check 7 good"));
  EXPECT_THAT(agent.Told(Order::kIdle), ElementsAre("sync idle"));
}

TEST(MachineTest, NoStepStartsWhileTheNodeIsChecked) {
  Agent agent;
  agent.Told(Order::kCheck, {"", 7});
  EXPECT_THAT(agent.Told(Order::kCheck, {"", 9}),
              ElementsAre("stop check", "check 9", "sync idle check 9 goes on"));
  EXPECT_THAT(agent.Told(Order::kExecute, kA1),
              ElementsAre("stop check", "start runs/a-g1", "sync executing runs/a-g1"));
  EXPECT_THAT(agent.Told(Order::kCheck, {"", 11}),
              ElementsAre("stop runs/a-g1", "sync executing runs/a-g1"));
}

TEST(MachineTest, WhoLeavesChecksNothing) {
  Agent agent;
  agent.Told(Order::kCheck, {"", 7});
  EXPECT_THAT(agent.On(LeaveRequested{}), ElementsAre("stop check", "sync idle leaving"));
  EXPECT_THAT(agent.Told(Order::kCheck, {"", 9}), ElementsAre("sync idle leaving"));
}

TEST(MachineTest, WorksOnItsCacheUntilThatIsDone) {
  Agent agent;
  EXPECT_THAT(agent.ToldToCache(3), ElementsAre("cache 3", "sync idle cache 3 goes on"));
  EXPECT_THAT(agent.ToldToCache(3), ElementsAre("sync idle cache 3 goes on"));
  EXPECT_THAT(agent.On(CacheSeen{3, false, "half"}), ElementsAre("sync idle cache 3 goes on"));
  EXPECT_THAT(agent.On(CacheSeen{2, true, "of another"}), ElementsAre("sync idle cache 3 goes on"));
  EXPECT_THAT(agent.On(CacheSeen{3, true, "all"}), ElementsAre("sync idle cache 3 done"));
  EXPECT_THAT(agent.ToldToCache(3), ElementsAre("sync idle cache 3 done")) << "it was not heard";
  EXPECT_THAT(agent.ToldToCache(0), ElementsAre("sync idle"));
  EXPECT_EQ(StatusOf(agent.state).cache_report, "all") << "what the cache has is still told";
}

TEST(MachineTest, ARunHasTheNodeAtOnceAndTheCacheGoesOnAfterwards) {
  Agent agent;
  agent.ToldToCache(3);
  EXPECT_THAT(
      agent.ToldToCache(3, Order::kExecute, kA1),
      ElementsAre("stop cache", "start runs/a-g1", "sync executing runs/a-g1 cache 3 goes on"));
  agent.On(RunObserved{.key = kA1, .is_started = true});
  EXPECT_THAT(agent.ToldToCache(3, Order::kIdle),
              ElementsAre("stop runs/a-g1", "sync executing runs/a-g1 cache 3 goes on"));
  agent.Ended(kA1, 0);
  agent.Uploaded(kA1, "result_1.txt");
  agent.Uploaded(kA1, "touch_0.json");
  EXPECT_THAT(agent.ToldToCache(3, Order::kForget, kA1),
              ElementsAre("forget runs/a-g1", "sync idle cache 3 goes on"));
  EXPECT_THAT(agent.ToldToCache(3), ElementsAre("cache 3", "sync idle cache 3 goes on"));
  EXPECT_THAT(agent.ToldToCache(3, Order::kCheck, {"", 7}),
              ElementsAre("stop cache", "check 7", "sync idle check 7 goes on cache 3 goes on"));
}

TEST(MachineTest, AnotherOrderTakesThePlaceOfTheOneThatGoesOn) {
  Agent agent;
  agent.ToldToCache(3);
  EXPECT_THAT(agent.ToldToCache(4),
              ElementsAre("stop cache", "cache 4", "sync idle cache 4 goes on"));
  EXPECT_THAT(agent.ToldToCache(0), ElementsAre("stop cache", "sync idle"));
  agent.ToldToCache(5);
  EXPECT_THAT(agent.On(LeaveRequested{}),
              ElementsAre("stop cache", "sync idle cache 5 goes on leaving"));
  EXPECT_THAT(agent.ToldToCache(5), ElementsAre("sync idle cache 5 goes on leaving"));
}

TEST(MachineTest, InputsForUnknownRunsChangeNothing) {
  Agent agent;
  EXPECT_THAT(agent.Ended(kA1, 5), IsEmpty());
  EXPECT_THAT(agent.On(EventsAcked{kA1, 5}), IsEmpty());
  EXPECT_THAT(agent.On(DeliveryRefused{kA1}), IsEmpty());
  EXPECT_THAT(agent.Uploaded(kA1, "x"), IsEmpty());
  EXPECT_THAT(agent.Told(Order::kForget, kA1), ElementsAre("sync idle"));
}

// Random orders, crashes and step ends: at most one step at a time, no generation twice, no
// generation after a newer one.
class MachineProperty : public ::testing::TestWithParam<uint64_t> {};

TEST_P(MachineProperty, OneStepAtATimeAndNoneTwice) {
  const Stream random(GetParam(), Purpose::kTest);
  uint64_t draw = 0;
  const auto below = [&](uint32_t bound) { return random.Below(draw++, bound); };
  Agent agent;
  std::set<RunKey> running;
  std::set<RunKey> ever_started;
  bool is_caching = false;

  for (int i = 0; i < 2000; ++i) {
    const RunKey key{below(2) == 0 ? "runs/a" : "runs/b", 1 + below(4) + i / 300};
    Input input = Tick{};
    switch (below(6)) {
      case 0:
      case 1:
        input = SyncReply{Desired{.order = static_cast<Order>(below(5)),
                                  .key = key,
                                  .spec = "spec",
                                  .cache_order = below(3)}};
        break;
      case 2:
        if (!running.empty()) {
          const RunKey ended = *running.begin();
          running.erase(running.begin());
          input = RunObserved{.key = ended, .is_started = true, .exit = StepExit{0, "x"}};
        }
        break;
      case 3:
        if (!running.empty()) input = RunObserved{.key = *running.begin(), .is_started = true};
        break;
      case 4:
        if (below(10) == 0) {  // the agent crashes; its disk stays
          agent.state = Restore(agent.state.runs, agent.state.fences);
          is_caching = false;
        }
        break;
      default:
        break;
    }
    for (const Action& action : Advance(input, &agent.state)) {
      if (std::holds_alternative<StartCaching>(action)) is_caching = true;
      if (std::holds_alternative<StopCaching>(action)) is_caching = false;
      EXPECT_FALSE(is_caching && !running.empty()) << "a run has the node for itself";
      const auto* start = std::get_if<StartStep>(&action);
      // The step is the one that refuses to start twice; the machine may ask until it has begun.
      if (start == nullptr || running.count(start->key) > 0) continue;
      EXPECT_TRUE(ever_started.insert(start->key).second) << Text(start->key);
      for (const RunKey& other : ever_started)
        EXPECT_FALSE(other.run == start->key.run && other.generation > start->key.generation);
      running.insert(start->key);
      EXPECT_EQ(running.size(), 1U);
    }
  }
  EXPECT_GT(ever_started.size(), 2U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, MachineProperty, ::testing::Range<uint64_t>(1, 21));

}  // namespace
}  // namespace assay::agent
