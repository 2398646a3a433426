// Programs whose clocks lie, as real processes under a real step; and honest ones on a busy
// machine.

#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/program_contract.h"
#include "common/rules/arrivals.h"
#include "common/rules/witnessed_time.h"
#include "tests/worker/agent/step_fixture.h"

namespace assay::agent {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

constexpr char kFaketime[] = "/usr/bin/faketime";  // Debian's package faketime

class StampsTest : public StepFixture {
 protected:
  StampsTest() {
    run_.worker.set_isolation(v1::WorkerConfig::NONE);
    run_.spec.mutable_command()->set_launcher(kPerRank);
    run_.spec.mutable_command()->set_stop_grace_s(1);
    run_.spec.set_submission("submissions/e-1");
    run_.spec.set_organization("Example University");
    run_.spec.add_hosts("127.0.0.1");
    run_.spec.set_program_port(12345);
  }

  // Runs a shell script that has `log KEY [MS]`, which stamps a record MS later than now. `before`
  // are words before the shell's.
  void RunProgram(const std::vector<std::string>& before, const std::string& script) {
    v1::CommandWorkload* const command = run_.spec.mutable_command();
    for (const std::string& word : before)
      command->add_command(word);
    for (const char* word : {"sh", "-c"})
      command->add_command(word);
    command->add_command(
        R"(log() {
  now=$(date +%s%3N)
  echo ':::MLLOG {"namespace": "", "time_ms": '$((now + ${2:-0}))', "event_type": "X", "key": "'$1'", "value": null, "metadata": {}}' >> $ASSAY_LOG
}
)" + script);
    EXPECT_EQ(Run(), (StepExit{0, "finished"}));
  }
  std::vector<rules::Arrival> Arrivals() const {
    return rules::ReadArrivals(ReadFile(directory_.ArrivalsPath()).value_or(""));
  }
  // What the coordinator finds: "RULE: found".
  std::vector<std::string> Found() const {
    rules::TimedLog log;
    log.Add(ReadFile(directory_.ResultPath(3)).value_or(""));
    const std::vector<rules::Arrival> arrivals = Arrivals();
    std::vector<rules::Finding> findings = rules::CheckArrivals(arrivals, log.Finish());
    if (const auto time = rules::TimeOf(arrivals, {}); time.has_value())
      for (rules::Finding& finding : rules::CheckTimes(*time, arrivals, {}))
        findings.push_back(std::move(finding));
    std::vector<std::string> found;
    for (const rules::Finding& finding : findings)
      found.push_back(absl::StrCat(finding.rule_id, ": ", finding.found));
    return found;
  }
};

// libfaketime of Debian, which a program is started with like any other.
class FaketimeTest : public StampsTest {
 protected:
  void SetUp() override {
    if (access(kFaketime, X_OK) != 0)
      GTEST_SKIP() << "libfaketime is not installed: faketime of deploy/packages.txt";
  }
};

TEST_F(StampsTest, ALineThatIsWrittenWithALaterTimeIsForged) {
  RunProgram({}, "log init_start; log run_start 10000; log run_stop 10000");

  EXPECT_THAT(Found(),
              ElementsAre(MatchesRegex("R-TIM-031: run_start stamped (10\\.0|9\\.).* after it .*"),
                          MatchesRegex("R-TIM-031: run_stop stamped (10\\.0|9\\.).* after it .*")));
}

TEST_F(FaketimeTest, AShiftedClockIsSeen) {
  RunProgram({"faketime", "-f", "+10s"}, "log run_start; log epoch_start; log run_stop");
  EXPECT_THAT(Found(), ElementsAre(HasSubstr("R-TIM-031: run_start stamped"),
                                   HasSubstr("R-TIM-031: run_stop stamped"),
                                   HasSubstr("R-TIM-032: 1 records that do not time the run")));
}

TEST_F(FaketimeTest, AClockThatIsBehindIsSeen) {
  RunProgram({"faketime", "-f", "-10s"}, "log run_start; log run_stop");
  EXPECT_THAT(Found(), ElementsAre(MatchesRegex("R-TIM-031: run_start stamped 10\\..* before .*"),
                                   MatchesRegex("R-TIM-031: run_stop stamped 10\\..* before .*")));
}

// Its 0.2 s are two, of which it shows a tenth.
TEST_F(FaketimeTest, AClockThatIsSlowedIsSeen) {
  RunProgram({"faketime", "-f", "+0 x0.1"}, "log run_start; sleep 0.2; log run_stop");
  EXPECT_THAT(Found(), ElementsAre(MatchesRegex("R-TIM-032: run_stop stamped .* before .*"),
                                   MatchesRegex("R-CLK-003: 0\\..* s by the log and [2-9]\\..*")));
}

TEST_F(FaketimeTest, AClockThatRunsAheadIsSeen) {
  RunProgram({"faketime", "-f", "+0 x100"}, "log run_start; sleep 20; log run_stop");
  EXPECT_THAT(Found(),
              ::testing::Contains(MatchesRegex("R-TIM-031: run_stop stamped [12].\\..* after .*")));
}

TEST_F(StampsTest, AnHonestProgramOnABusyMachineIsNotAccused) {
  std::atomic<bool> is_over = false;
  std::vector<std::thread> busy;
  for (unsigned i = 0; i < 4 * std::thread::hardware_concurrency(); ++i)
    busy.emplace_back([&is_over] {
      while (!is_over.load(std::memory_order_relaxed)) {
      }
    });

  RunProgram({},
             "log init_start; log run_start; for i in $(seq 50); do log epoch_start; done; "
             "log run_stop");
  is_over = true;
  for (std::thread& thread : busy)
    thread.join();

  EXPECT_THAT(Found(), IsEmpty());
  EXPECT_EQ(Arrivals().size(), 3U) << "of those that are stamped right no more are written down";
  EXPECT_THAT(ReadFile(directory_.StepLogPath()).value_or(""), HasSubstr("log records=53 "));
}

}  // namespace
}  // namespace assay::agent
