// Questions to the history. The oracle is common/filter's own evaluation over the rows as they are
// shown: what SQL finds has to be what it finds, for generated filters over generated entries.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/filter.h"
#include "common/history_fields.h"
#include "common/log.h"
#include "server/store/history_reader.h"
#include "server/store/sqlite.h"
#include "server/store/store.h"
#include "tests/server/core/world.h"
#include "tests/server/store/history_fixture.h"
#include "tests/support/status_matchers.h"

namespace assay::store {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::StatusIs;
using core::HistoryAnswer;
using core::HistoryQuestion;
using core::HistoryValue;
using core::testing::SomeSpec;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAreArray;

class HistoryTest : public HistoryFixture {};

TEST_F(HistoryTest, FindsWhatTheFilterItselfFinds) {
  for (const HistoryKind kind : {HistoryKind::kEntry, HistoryKind::kRun, HistoryKind::kFinding,
                                 HistoryKind::kHyperparameter}) {
    const Everything all = Read(kind);
    ASSERT_GT(all.rows.size(), 40u);
    size_t selective_count = 0;
    for (int i = 0; i < 600; ++i) {
      const std::string text = SomeFilter(kind, all, 3);
      HistoryQuestion question{
          .kind = kind, .filter = text, .columns = all.columns, .page_size = 1000};
      question.viewer = kOperator;
      const auto parsed = ParseFilter(
          text, HistorySchema(kind, [](absl::string_view name) { return std::string(name); }),
          absl::UnixEpoch());
      ASSERT_THAT(parsed, IsOk()) << text;
      std::vector<std::vector<HistoryValue>> expected;
      for (size_t row = 0; row < all.rows.size(); ++row) {
        const auto value_of = [&](const std::string& field, const std::string& key) {
          return all.ValueOf(row, field, key);
        };
        if (Matches(*parsed, value_of)) expected.push_back(all.rows[row]);
      }

      const auto answer = reader_->Ask(question);

      ASSERT_THAT(answer, IsOk()) << text;
      ASSERT_EQ(answer->rows, expected) << ToString(kind) << ": " << text << " seed " << kSeed;
      EXPECT_EQ(answer->total_count, static_cast<int64_t>(expected.size())) << text;
      EXPECT_LE(answer->total_count + answer->hidden_count, static_cast<int64_t>(all.rows.size()));
      if (!expected.empty() && expected.size() < all.rows.size()) ++selective_count;
    }
    EXPECT_GT(selective_count, 200u);
  }
}

TEST_F(HistoryTest, PagesFollowEachOtherInEveryOrder) {
  for (const HistoryKind kind : {HistoryKind::kEntry, HistoryKind::kRun}) {
    for (const HistoryField& field : HistoryFields(kind)) {
      if (field.type == HistoryType::kTexts) continue;
      const std::string name =
          absl::StrCat(field.name, field.type == HistoryType::kMap ? ".batch" : "");
      for (const char* const direction : {"", " desc"}) {
        HistoryQuestion question{.kind = kind,
                                 .order_by = absl::StrCat(name, direction, ", system"),
                                 .columns = {"id"},
                                 .page_size = 1000};
        question.viewer = kOperator;
        const std::vector<std::string> whole = AllIds(question);
        EXPECT_EQ(std::set<std::string>(whole.begin(), whole.end()).size(), whole.size());
        question.page_size = 7;
        EXPECT_EQ(AllIds(question), whole) << question.order_by;
      }
    }
  }
}

TEST_F(HistoryTest, WhatIsNotThereComesLast) {
  HistoryQuestion question{.order_by = "minutes desc", .columns = {"minutes"}, .page_size = 1000};
  question.viewer = kOperator;
  const auto answer = reader_->Ask(question);
  ASSERT_THAT(answer, IsOk());
  bool is_end = false;
  double last = 1e9;
  for (const std::vector<HistoryValue>& row : answer->rows) {
    const auto* const minutes = std::get_if<double>(&row.front());
    if (minutes == nullptr) {
      is_end = true;
    } else {
      EXPECT_FALSE(is_end);
      EXPECT_LE(*minutes, last);
      last = *minutes;
    }
  }
  EXPECT_TRUE(is_end);
}

TEST_F(HistoryTest, GroupsHaveWhatTheirRowsHave) {
  HistoryQuestion rows{.kind = HistoryKind::kRun,
                       .filter = "converged=true",
                       .columns = {"system", "minutes"},
                       .page_size = 1000};
  rows.viewer = kOperator;
  std::map<std::string, std::vector<double>> expected;
  std::map<std::string, int64_t> counts;
  const auto found = reader_->Ask(rows);
  ASSERT_THAT(found, IsOk());
  for (const std::vector<HistoryValue>& row : found->rows) {
    const std::string& system = std::get<std::string>(row[0]);
    ++counts[system];
    if (const auto* const minutes = std::get_if<double>(&row[1]))
      expected[system].push_back(*minutes);
  }
  HistoryQuestion groups{
      .kind = HistoryKind::kRun,
      .filter = "converged=true",
      .group_by = {"system"},
      .aggregates = {"count", "min(minutes)", "max(minutes)", "mean(minutes)", "p0(minutes)",
                     "p50(minutes)", "p100(minutes)", "count(minutes)"}};
  groups.viewer = kOperator;

  const auto answer = reader_->Ask(groups);

  ASSERT_THAT(answer, IsOk());
  EXPECT_EQ(answer->columns[1].name, "count");
  EXPECT_EQ(answer->columns[5].unit, "min");
  ASSERT_EQ(answer->rows.size(), counts.size());
  for (const std::vector<HistoryValue>& row : answer->rows) {
    const std::string& system = std::get<std::string>(row[0]);
    std::vector<double>& values = expected[system];
    std::sort(values.begin(), values.end());
    double sum = 0;
    for (const double value : values)
      sum += value;
    const size_t n = values.size();
    ASSERT_GT(n, 2u);
    EXPECT_EQ(std::get<int64_t>(row[1]), counts[system]);
    EXPECT_EQ(std::get<double>(row[2]), values.front());
    EXPECT_EQ(std::get<double>(row[3]), values.back());
    EXPECT_NEAR(std::get<double>(row[4]), sum / static_cast<double>(n), 1e-9);
    EXPECT_EQ(std::get<double>(row[5]), values.front());
    EXPECT_NEAR(std::get<double>(row[6]), (values[(n - 1) / 2] + values[n / 2]) / 2, 1e-9);
    EXPECT_EQ(std::get<double>(row[7]), values.back());
    EXPECT_EQ(std::get<int64_t>(row[8]), static_cast<int64_t>(n));
  }
}

TEST_F(HistoryTest, PagesOfGroupsFollowEachOther) {
  HistoryQuestion question{.kind = HistoryKind::kRun,
                           .order_by = "count desc",
                           .group_by = {"system", "organization"},
                           .page_size = 1000};
  question.viewer = kOperator;
  const auto whole = reader_->Ask(question);
  ASSERT_THAT(whole, IsOk());
  question.page_size = 3;
  std::vector<std::vector<HistoryValue>> paged;
  do {
    const auto answer = reader_->Ask(question);
    ASSERT_THAT(answer, IsOk());
    paged.insert(paged.end(), answer->rows.begin(), answer->rows.end());
    question.page_token = answer->next_page_token;
  } while (!question.page_token.empty());
  EXPECT_EQ(paged, whole->rows);
  EXPECT_EQ(whole->total_count, static_cast<int64_t>(whole->rows.size()));
}

TEST_F(HistoryTest, ATokenIsOfItsQuestion) {
  HistoryQuestion question{.order_by = "minutes", .page_size = 5, .viewer = kOperator};
  question.page_token = reader_->Ask(question)->next_page_token;
  ASSERT_THAT(reader_->Ask(question), IsOk());
  HistoryQuestion other = question;
  other.order_by = "minutes desc";
  EXPECT_THAT(ErrorOf(other), HasSubstr("page_token is not of this question"));
  other = question;
  other.filter = "system=100%";
  EXPECT_THAT(ErrorOf(other), HasSubstr("page_token is not of this question"));
  for (const char* const token : {"x", "W10", "WyIxIl0", "e30", "\xff"}) {
    other = question;
    other.page_token = token;
    EXPECT_THAT(ErrorOf(other), HasSubstr("page_token")) << token;
  }
}

TEST_F(HistoryTest, ErrorsSayWhereWhyAndWhatWouldDo) {
  EXPECT_THAT(ErrorOf({.filter = "minuts<3"}),
              AllOf(StartsWith("filter, at 0: there is no field 'minuts'"), HasSubstr("minutes")));
  EXPECT_THAT(
      ErrorOf({.order_by = "id, minuts desc"}),
      AllOf(StartsWith("order_by, at 4: there is no field 'minuts'"), HasSubstr("minutes")));
  EXPECT_THAT(ErrorOf({.order_by = "id down"}), StartsWith("order_by, at 0: write FIELD"));
  EXPECT_THAT(ErrorOf({.columns = {"id", "x"}}),
              StartsWith("columns, at 3: there is no field 'x'"));
  EXPECT_THAT(ErrorOf({.columns = {"hyperparameters"}}), HasSubstr("hyperparameters.KEY"));
  EXPECT_THAT(ErrorOf({.group_by = {"findings"}}), HasSubstr("several values"));
  EXPECT_THAT(ErrorOf({.aggregates = {"p101(minutes)"}}), HasSubstr("p95(FIELD)"));
  EXPECT_THAT(ErrorOf({.aggregates = {"mean(system)"}}),
              AllOf(StartsWith("aggregates, at 5:"), HasSubstr("is no number")));
  EXPECT_THAT(ErrorOf({.aggregates = {"mean"}}), HasSubstr("mean(minutes)"));
  EXPECT_THAT(ErrorOf({.order_by = "minutes", .group_by = {"system"}}),
              HasSubstr("they are system, count"));
  EXPECT_THAT(ErrorOf({.page_size = -5}), HasSubstr("page_size is -5"));
}

TEST_F(HistoryTest, NothingThatIsWrittenBecomesSql) {
  for (const char* const hostile :
       {"'; DROP TABLE runs; --", "\" OR 1=1", "%", "_", "a' OR 'a'='a", "]", "[a-z]", "\\"}) {
    std::string quoted;
    for (const char* c = hostile; *c != 0; ++c)
      absl::StrAppend(&quoted, *c == '"' || *c == '\\' ? "\\" : "", std::string(1, *c));
    HistoryQuestion question{
        .filter = absl::StrCat("system=\"", quoted, "\" OR hyperparameters.x=\"", quoted, "\""),
        .viewer = kOperator};
    const auto answer = reader_->Ask(question);
    ASSERT_THAT(answer, IsOk()) << hostile;
    EXPECT_THAT(answer->rows, IsEmpty()) << hostile;
  }
}

TEST_F(HistoryTest, ShowsAndCountsOnlyWhatMayBeSeen) {
  const auto ask = [this](HistoryQuestion question, const core::VisibleTo& viewer) {
    question.viewer = viewer;
    question.page_size = 1000;
    return *reader_->Ask(question);
  };
  for (const char* const organization : {"", "LBNL", "NVIDIA", "LBNL+NVIDIA", "BN"}) {
    for (const bool sees_published : {false, true}) {
      const core::VisibleTo viewer{.organization = organization,
                                   .sees_published = sees_published,
                                   .now_us = core::testing::kStart + 1};
      for (const HistoryKind kind : {HistoryKind::kEntry, HistoryKind::kRun}) {
        // Also those that may be seen only whole.
        const std::string secret = kind == HistoryKind::kEntry ? "submitter" : "state_reason";
        std::vector<std::vector<HistoryValue>> seen;
        std::vector<std::vector<HistoryValue>> seen_whole;
        for (const auto& row :
             ask({.kind = kind, .columns = {"id", "organization", "published"}}, kOperator).rows) {
          core::Disclosure disclosure{.organization = std::get<std::string>(row[1])};
          if (const auto* const at = std::get_if<absl::Time>(&row[2]))
            disclosure.published_at_us = absl::ToUnixMicros(*at);
          const core::Sight sight = core::SightOf(viewer, disclosure);
          if (sight != core::Sight::kNothing) seen.push_back(row);
          if (sight == core::Sight::kWhole) seen_whole.push_back({row[0]});
        }

        const HistoryAnswer answer =
            ask({.kind = kind, .columns = {"id", "organization", "published"}}, viewer);

        EXPECT_EQ(answer.rows, seen) << organization;
        EXPECT_EQ(answer.total_count, static_cast<int64_t>(seen.size()));
        EXPECT_THAT(answer.hidden_reason, HasSubstr("neither shown nor counted"));
        for (const HistoryQuestion& private_question :
             {HistoryQuestion{
                  .kind = kind, .filter = absl::StrCat("-", secret, "=x"), .columns = {"id"}},
              HistoryQuestion{.kind = kind, .order_by = secret, .columns = {"id"}}}) {
          const HistoryAnswer whole = ask(private_question, viewer);
          EXPECT_THAT(whole.rows, UnorderedElementsAreArray(seen_whole)) << organization;
          EXPECT_EQ(whole.hidden_count, 0);
        }
      }
      // Of findings, that of a rival is not counted under a filter either.
      if (!sees_published) {
        const HistoryAnswer rivals =
            ask({.kind = HistoryKind::kFinding, .filter = "organization=\"Example [University]\""},
                viewer);
        EXPECT_EQ(rivals.total_count + rivals.hidden_count, 0);
      }
    }
  }
}

TEST_F(HistoryTest, SaysHowManyRowsLackWhatIsCompared) {
  HistoryQuestion question{.filter = "minutes<100", .page_size = 1000, .viewer = kOperator};
  const auto answer = reader_->Ask(question);
  ASSERT_THAT(answer, IsOk());
  EXPECT_GT(answer->hidden_count, 0);
  EXPECT_EQ(answer->total_count + answer->hidden_count, kEntryCount);
  EXPECT_THAT(answer->hidden_reason, HasSubstr("a value that the filter compares"));
  // Also where what is compared is excluded: without a score it is not below, but also not known.
  question.filter = "-minutes<100";
  EXPECT_EQ(reader_->Ask(question)->hidden_count, 0);
}

// A clock that has gone on whenever it is asked.
class HastyClock final : public Clock {
 public:
  absl::Time Wall() const override { return absl::UnixEpoch(); }
  MonoTime Mono() const override { return now_ = now_ + absl::Seconds(1); }

 private:
  mutable MonoTime now_;
};

TEST_F(HistoryTest, EndsAQuestionThatTakesTooLong) {
  // A product of all findings with themselves, so that SQLite asks the time.
  for (int64_t i = 0; i < 150; ++i)
    CHECK_OK(world_.Do(SomeImport(kEntryCount + i)).status());
  const HastyClock hasty;
  const auto reader = *HistoryReader::Open(path_, &hasty);
  HistoryQuestion question{.kind = HistoryKind::kRun,
                           .filter = "findings:*R* state_reason!=x -hyperparameters.opt=sg*",
                           .order_by = "quality desc",
                           .viewer = kOperator};

  EXPECT_THAT(reader->Ask(question), StatusIs(absl::StatusCode::kResourceExhausted,
                                              AllOf(HasSubstr("2s"), HasSubstr("narrow it"))));
  EXPECT_THAT(reader_->Ask(question), IsOk());  // by a clock that stands
}

TEST_F(HistoryTest, KeptFactsAreWhatWouldBeMadeAnew) {
  ASSERT_THAT(world_.Sync("w0"), IsOk());
  core::SubmissionSpec spec = SomeSpec();
  spec.run_count = 2;
  spec.hyperparameters = {{"opt_name", "\"sgd\""}, {"opt_base_learning_rate", "1e-3"}};
  const core::SubmissionId id = world_.Submit(spec);
  EXPECT_THAT(*store_->CompareFacts(), IsEmpty());
  world_.Succeed(core::RunId{world_.submission(id).runs.front()});
  EXPECT_THAT(*store_->CompareFacts(), IsEmpty());
  ASSERT_THAT(world_.Do(core::CancelSubmission{id, "enough"}), IsOk());

  EXPECT_THAT(*store_->CompareFacts(), IsEmpty());

  // Those of another version are made anew when the database is opened.
  store_.reset();
  {
    Db db = *Db::Open(path_, OpenMode::kReadWriteCreate);
    ASSERT_THAT(db.Exec("DELETE FROM run_findings; UPDATE run_facts SET seconds = 1; "
                        "UPDATE counters SET value = 0 WHERE name = 'facts_version'"),
                IsOk());
  }
  store_ = *Store::Open(path_);
  EXPECT_THAT(*store_->CompareFacts(), IsEmpty());
  HistoryQuestion question{.filter = absl::StrCat("id=", id.ToString()), .viewer = kOperator};
  question.columns = {"state", "hyperparameters.opt_name", "hyperparameters.opt_base_learning_rate",
                      "converged_count"};
  const auto answer = reader_->Ask(question);
  ASSERT_THAT(answer, IsOk());
  EXPECT_THAT(answer->rows, ElementsAre(ElementsAre(HistoryValue("cancelled"), HistoryValue("sgd"),
                                                    HistoryValue(1e-3), HistoryValue(int64_t{1}))));
}

TEST_F(HistoryTest, WhatIsWithdrawnCanBeLeftOut) {
  const core::SubmissionId kept = world_.Submit(SomeSpec());
  const core::SubmissionId withdrawn = world_.Submit(SomeSpec());
  ASSERT_THAT(world_.Do(core::WithdrawSubmission{withdrawn, "mis-cabled"}), IsOk());
  const auto ids = [this](HistoryKind kind, const std::string& filter) {
    HistoryQuestion question{.kind = kind,
                             .filter = absl::StrCat("imported=false ", filter),
                             .columns = {kind == HistoryKind::kRun ? "entry" : "id"},
                             .viewer = kOperator};
    std::set<std::string> found;
    for (const std::string& id : Ids(*reader_->Ask(question)))
      found.insert(id);
    return found;
  };

  for (const HistoryKind kind : {HistoryKind::kEntry, HistoryKind::kRun}) {
    EXPECT_THAT(ids(kind, "withdrawn=false"), ElementsAre(kept.ToString()));
    EXPECT_THAT(ids(kind, "withdrawn=true"), ElementsAre(withdrawn.ToString()));
  }
  EXPECT_THAT(*store_->CompareFacts(), IsEmpty());
}

TEST_F(HistoryTest, WorkersAreAskedForToo) {
  ASSERT_THAT(world_.Sync("w0"), IsOk());
  ASSERT_THAT(world_.Sync("w1"), IsOk());
  HistoryQuestion question{
      .kind = HistoryKind::kWorker, .filter = "state=alive id=w*", .columns = {"id", "state"}};
  const auto answer = reader_->Ask(question);
  ASSERT_THAT(answer, IsOk());
  EXPECT_EQ(Ids(*answer), (std::vector<std::string>{"w0", "w1"}));
}

TEST_F(HistoryTest, WhoseLeaseAWorkerIsInIsForThoseWhoSeeAll) {
  ASSERT_THAT(world_.Sync("w0"), IsOk());
  HistoryQuestion question{.kind = HistoryKind::kWorker, .columns = {"id", "allocation"}};
  question.viewer = {.organization = "LBNL", .sees_published = true};
  EXPECT_THAT(reader_->Ask(question)->rows, IsEmpty());
  question.viewer = kOperator;
  EXPECT_THAT(Ids(*reader_->Ask(question)), ElementsAre("w0"));
}

TEST_F(HistoryTest, ASeedIsToldOnceItsRunHasStarted) {
  ASSERT_THAT(world_.Sync("w0"), IsOk());
  core::SubmissionSpec spec = SomeSpec();
  spec.run_count = 1;
  const core::SubmissionId id = world_.Submit(spec);
  const core::RunId run{world_.submission(id).runs.front()};
  HistoryQuestion question{.kind = HistoryKind::kRun,
                           .filter = absl::StrCat("id=", run.ToString()),
                           .columns = {"seed"},
                           .viewer = kOperator};
  EXPECT_THAT(reader_->Ask(question)->rows, ElementsAre(ElementsAre(HistoryValue())));

  world_.Succeed(run);

  const int64_t seed = world_.state().runs.at(run).seed;
  EXPECT_THAT(reader_->Ask(question)->rows, ElementsAre(ElementsAre(HistoryValue(seed))));
}

// A log may say anything.
TEST_F(HistoryTest, TimesThatDoNotFitAreAbsent) {
  core::ImportSubmission import = SomeImport(kEntryCount);
  core::RunFacts facts;
  facts.run_start_ms = std::numeric_limits<int64_t>::min();
  facts.run_stop_ms = std::numeric_limits<int64_t>::max();
  import.runs = {{ {"result_0.txt", std::string(64, 'b'), 9}, facts, "result_0.txt" }};
  ASSERT_THAT(world_.Do(import), IsOk());
  HistoryQuestion question{
      .kind = HistoryKind::kRun, .columns = {"seconds", "time"}, .page_size = 1};
  question.viewer = kOperator;

  EXPECT_THAT(reader_->Ask(question)->rows,
              ElementsAre(ElementsAre(HistoryValue(), HistoryValue())));
}

// What is most asked for has an index, and the newest are found without sorting.
TEST_F(HistoryTest, CommonQuestionsHaveAnIndex) {
  const auto plan = [this](HistoryQuestion question) {
    question.viewer = kOperator;
    return absl::StrJoin(*reader_->ExplainPlan(question), "\n");
  };
  EXPECT_THAT(plan({.kind = HistoryKind::kRun}), Not(HasSubstr("TEMP B-TREE")));
  EXPECT_THAT(plan({.kind = HistoryKind::kRun, .filter = "system=perlmutter"}),
              HasSubstr("run_facts_by_system"));
  EXPECT_THAT(plan({.kind = HistoryKind::kRun, .filter = "benchmark=cosmoflow round=hpc-2.0.0"}),
              HasSubstr("run_facts_by_benchmark"));
  EXPECT_THAT(plan({.kind = HistoryKind::kRun, .filter = "entry=e-3"}),
              HasSubstr("run_facts_by_entry"));
  EXPECT_THAT(plan({.kind = HistoryKind::kEntry, .filter = "id=e-3"}), HasSubstr("PRIMARY KEY"));
  EXPECT_THAT(plan({.kind = HistoryKind::kHyperparameter, .filter = "key=opt number>3"}),
              HasSubstr("hyperparameters_by_key"));
}

}  // namespace
}  // namespace assay::store
