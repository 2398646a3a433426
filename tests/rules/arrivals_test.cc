#include "common/rules/arrivals.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/rules/witnessed_time.h"

namespace assay::rules {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Record(const std::string& key, int64_t time_ms) {
  return absl::StrCat(R"(:::MLLOG {"namespace": "", "time_ms": )", time_ms,
                      R"(, "event_type": "POINT_IN_TIME", "key": ")", key,
                      R"(", "value": null, "metadata": {}})", "\n");
}

std::string Honest() {
  return absl::StrCat(Record("init_start", 1000), "free text\n", Record("seed", 1500),
                      Record("run_start", 2000), Record("run_stop", 3000));
}

std::vector<TimedRecord> TimedOf(const std::string& log) {
  TimedLog timed;
  for (const char c : log)  // in pieces of any size
    timed.Add(absl::string_view(&c, 1));
  return timed.Finish();
}

// Arrivals of the records, each `late_ms` after its stamp.
std::vector<Arrival> Arrived(const std::vector<TimedRecord>& records, double late_ms) {
  std::vector<Arrival> arrivals;
  for (const TimedRecord& record : records) {
    const double at_ms = record.time_ms + late_ms;
    arrivals.push_back(
        {record, static_cast<int64_t>(at_ms * 1000), static_cast<int64_t>(at_ms * 1e6)});
  }
  return arrivals;
}

// What is said of these arrivals, whose log was not changed: "RULE: found".
std::vector<std::string> Found(const std::vector<Arrival>& arrivals) {
  std::vector<TimedRecord> logged;
  for (const Arrival& arrival : arrivals)
    if (arrival.record.TimesTheRun()) logged.push_back(arrival.record);
  std::vector<std::string> found;
  for (const Finding& finding : CheckArrivals(arrivals, logged))
    found.push_back(absl::StrCat(finding.rule_id, ": ", finding.found));
  return found;
}

TEST(ArrivalsTest, RecordsThatTimeTheRunAreTakenFromTheLog) {
  const std::vector<TimedRecord> records = TimedOf(Honest());

  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[1].key, "run_start");
  EXPECT_EQ(records[1].line, 4);
  EXPECT_EQ(records[2].time_ms, 3000);
}

TEST(ArrivalsTest, AStampMustBeThatOfTheArrival) {
  const std::vector<TimedRecord> records = TimedOf(Honest());
  struct Case {
    double late_ms;
    const char* rule;  // null: none
  };
  for (const Case& c :
       {Case{0, nullptr}, Case{999, nullptr}, Case{1001, "R-TIM-032"}, Case{5000, "R-TIM-032"},
        Case{5001, "R-TIM-031"}, Case{-2, nullptr}, Case{-3, "R-TIM-031"}}) {
    const std::vector<Finding> findings = CheckArrivals(Arrived(records, c.late_ms), records);
    EXPECT_EQ(findings.size(), c.rule == nullptr ? 0u : 3u) << c.late_ms;
    for (const Finding& finding : findings)
      EXPECT_EQ(finding.rule_id, c.rule) << c.late_ms;
  }
}

TEST(ArrivalsTest, AStopThatIsBackDatedShowsBothNumbers) {
  std::vector<TimedRecord> records = TimedOf(Honest());
  std::vector<Arrival> arrivals = Arrived(records, 0);
  arrivals[2].record.time_ms = records[2].time_ms -= 10'000;

  const std::vector<Finding> findings = CheckArrivals(arrivals, records);

  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].rule_id, "R-TIM-031");
  EXPECT_EQ(findings[0].severity, Severity::kError);
  EXPECT_EQ(findings[0].key, "run_stop");
  EXPECT_EQ(findings[0].found, "run_stop stamped 10.000 s before it arrived on the node");
  EXPECT_EQ(TimeOf(arrivals, {})->node_ms, 1000);
}

TEST(ArrivalsTest, AStartThatIsWrittenWithALaterTimeIsForged) {
  std::vector<Arrival> arrivals = Arrived(TimedOf(Honest()), 0.1);
  arrivals[1].record.time_ms += 10'000;

  EXPECT_THAT(Found(arrivals),
              ElementsAre("R-TIM-031: run_start stamped 10.000 s after it arrived on the node"));
}

TEST(ArrivalsTest, WhatTheNodeSawLateAccusesNobody) {
  std::vector<Arrival> arrivals = Arrived(TimedOf(Honest()), 6000);
  for (Arrival& arrival : arrivals)
    arrival.late_ns = 5'500'000'000;  // as of a step that was stopped
  EXPECT_THAT(Found(arrivals), IsEmpty());

  arrivals[0].late_ns = 4'500'000'000;
  EXPECT_THAT(Found(arrivals),
              ElementsAre("R-TIM-032: init_start stamped 6.000 s before it arrived on the node"));
}

TEST(ArrivalsTest, AClockThatIsSetBetweenStampAndArrivalAccusesNobody) {
  for (const int64_t set_ms : {-30'000, 30'000}) {
    std::vector<Arrival> arrivals = Arrived(TimedOf(Honest()), 0.1);
    for (size_t i = 1; i < arrivals.size(); ++i)
      arrivals[i].wall_us += set_ms * 1000;
    arrivals[2].record.time_ms += static_cast<double>(set_ms);  // stamped by the new clock
    EXPECT_THAT(Found(arrivals), IsEmpty()) << set_ms;

    arrivals[1].record.time_ms += 10'000;  // that is no excuse for anything else
    EXPECT_THAT(Found(arrivals), ElementsAre(HasSubstr("R-TIM-031: run_start"))) << set_ms;
  }
}

TEST(ArrivalsTest, OtherRecordsAreToldTogetherAndFailNoRun) {
  std::vector<Arrival> arrivals = Arrived(TimedOf(Honest()), 0);
  const std::optional<TimedRecord> epoch = ReadTimedRecord(Record("epoch_start", 2500), 40);
  ASSERT_TRUE(epoch.has_value());
  for (const double late_ms : {1500, 20'000, -5000, 30})
    arrivals.push_back(Arrived({*epoch}, late_ms)[0]);

  EXPECT_FALSE(IsStampedRight(arrivals[3]));
  EXPECT_TRUE(IsStampedRight(arrivals[6]));
  const std::vector<Finding> findings = CheckArrivals(arrivals, TimedOf(Honest()));

  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].rule_id, "R-TIM-032");
  EXPECT_EQ(findings[0].severity, Severity::kWarning);
  EXPECT_EQ(findings[0].line, 40);
  EXPECT_EQ(findings[0].found,
            "3 records that do not time the run; the worst of them is stamped 20.000 s before it "
            "arrived on the node");
}

TEST(ArrivalsTest, ALogThatIsChangedAfterwardsIsFound) {
  const std::vector<TimedRecord> records = TimedOf(Honest());
  const std::vector<Arrival> arrivals = Arrived(records, 0);
  std::vector<TimedRecord> changed = records;
  changed[1].time_ms += 500;
  const std::vector<TimedRecord> shorter(records.begin(), records.begin() + 2);

  EXPECT_EQ(CheckArrivals(arrivals, changed)[0].rule_id, "R-TIM-034");
  EXPECT_EQ(CheckArrivals(arrivals, shorter)[0].rule_id, "R-TIM-034");
  EXPECT_EQ(CheckArrivals({}, records)[0].rule_id, "R-TIM-034");
}

TEST(ArrivalsTest, ArrivalsAreReadAsTheyWereWritten) {
  const std::vector<Arrival> arrivals = Arrived(TimedOf(Honest()), 0.25);

  const std::vector<Arrival> read = ReadArrivals(ArrivalsText(arrivals) + "no JSON\n{}\n");

  ASSERT_EQ(read.size(), arrivals.size());
  EXPECT_EQ(ArrivalsText(read), ArrivalsText(arrivals));
  EXPECT_EQ(read[1].record.key, "run_start");
  EXPECT_EQ(read[1].wall_us, 2'000'250);
}

}  // namespace
}  // namespace assay::rules
