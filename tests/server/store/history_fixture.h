// A store of generated entries, runs and findings, and questions about them.

#ifndef TESTS_SERVER_STORE_HISTORY_FIXTURE_H_
#define TESTS_SERVER_STORE_HISTORY_FIXTURE_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"

#include "common/filter.h"
#include "common/history_fields.h"
#include "common/log.h"
#include "server/store/history_reader.h"
#include "server/store/store.h"
#include "tests/server/core/world.h"
#include "tests/support/fake_clock.h"
#include "tests/support/temp_dir.h"

namespace assay::store {

inline constexpr int64_t kEntryCount = 60;
inline constexpr uint32_t kSeed = 20261124;

inline const char* const kOrganizations[] = {"LBNL", "NVIDIA", "LBNL+NVIDIA",
                                             "Example [University]"};
inline const char* const kSystems[] = {"perlmutter", "selene_n1", "x?y", "100%"};
inline const char* const kBenchmarks[] = {"cosmoflow", "deepcam"};
inline const char* const kRules[] = {"R-HP-004", "R-TIM-003", "R-HP-010"};

class HistoryFixture : public ::testing::Test {
 protected:
  HistoryFixture() {
    for (int64_t i = 0; i < kEntryCount; ++i)
      CHECK_OK(world_.Do(SomeImport(i)).status());
    reader_ = *HistoryReader::Open(path_, &clock_);
  }

  uint32_t Below(uint32_t end) { return static_cast<uint32_t>(random_() % end); }
  template <size_t N>
  std::string OneOf(const char* const (&texts)[N]) {
    return texts[Below(N)];
  }

  core::RunFacts SomeFacts() {
    core::RunFacts facts;
    facts.is_converged = Below(4) != 0;
    if (Below(5) != 0) facts.is_compliant = Below(5) != 0;
    if (Below(6) != 0) {
      facts.run_start_ms = 1'600'000'000'000 + Below(1'000'000'000);
      facts.run_stop_ms = *facts.run_start_ms + 60'000 * (1 + Below(40));
    }
    if (Below(4) != 0) facts.quality = 0.1 + Below(10) / 64.0;
    if (Below(4) != 0) facts.epoch_count = 10 + Below(5);
    facts.global_batch_size = Below(3) * 512;
    for (uint32_t k = Below(3); k > 0; --k)
      facts.findings.push_back(
          {.rule_id = OneOf(kRules), .line = k, .expected = "it's", .found = ""});
    return facts;
  }

  core::ImportSubmission SomeImport(int64_t i) {
    core::ImportSubmission import{.spec = core::testing::SomeSpec(),
                                  .source_path = absl::StrCat("a/", i)};
    import.published_at_us =
        std::vector<int64_t>{0, core::testing::kStart, core::testing::kStart * 2}[Below(3)];
    import.spec.organization = OneOf(kOrganizations);
    import.spec.system = OneOf(kSystems);
    import.spec.benchmark = OneOf(kBenchmarks);
    import.spec.node_count = static_cast<int32_t>(1 + Below(3));
    import.rules.is_staging_timed = Below(2) == 0;
    if (Below(3) != 0) import.score_minutes = 1 + Below(30);
    if (Below(2) == 0) import.spec.hyperparameters.push_back({"batch", absl::StrCat(Below(3) * 8)});
    if (Below(2) == 0)
      import.spec.hyperparameters.push_back({"opt", Below(2) ? "\"sgd\"" : "\"8\""});
    if (Below(4) == 0) import.spec.hyperparameters.push_back({"flag", "true"});
    for (uint32_t k = Below(2); k > 0; --k)
      import.findings.push_back({.rule_id = OneOf(kRules), .severity = rules::Severity::kWarning});
    for (uint32_t k = Below(5); k > 0; --k)
      import.runs.push_back({{absl::StrCat("result_", k, ".txt"), std::string(64, 'b'), 9},
                             SomeFacts(),
                             absl::StrCat("result_", k, ".txt")});
    return import;
  }

  // All rows of `kind` with all of their fields, and the keys of maps that there are.
  struct Everything {
    std::vector<std::string> columns;
    std::vector<std::vector<core::HistoryValue>> rows;

    FilterValue ValueOf(size_t row, const std::string& field, const std::string& key) const {
      const std::string name = key.empty() ? field : absl::StrCat(field, ".", key);
      const auto it = std::find(columns.begin(), columns.end(), name);
      if (it == columns.end()) return {};
      const core::HistoryValue& value = rows[row][static_cast<size_t>(it - columns.begin())];
      if (const auto* const integer = std::get_if<int64_t>(&value))
        return static_cast<double>(*integer);
      if (const auto* const number = std::get_if<double>(&value)) return *number;
      if (const auto* const text = std::get_if<std::string>(&value)) return *text;
      if (const auto* const truth = std::get_if<bool>(&value)) return *truth;
      if (const auto* const time = std::get_if<absl::Time>(&value)) return *time;
      if (const auto* const texts = std::get_if<std::vector<std::string>>(&value)) return *texts;
      return {};
    }
  };

  Everything Read(HistoryKind kind) {
    core::HistoryQuestion question{.kind = kind, .page_size = 1000, .viewer = kOperator};
    for (const HistoryField& field : HistoryFields(kind)) {
      if (field.type != HistoryType::kMap) question.columns.emplace_back(field.name);
    }
    if (kind == HistoryKind::kEntry || kind == HistoryKind::kRun)
      for (const char* key : {"batch", "opt", "flag"})
        question.columns.push_back(absl::StrCat("hyperparameters.", key));
    const auto answer = reader_->Ask(question);
    CHECK_OK(answer.status());
    CHECK(answer->next_page_token.empty());
    return {question.columns, answer->rows};
  }

  // A value that some rows have.
  std::string SomeValue(const Everything& all, const HistoryField& field, const std::string& name) {
    std::string text = "0";
    if (!all.rows.empty()) {
      const std::pair<std::string, std::string> parts =
          absl::StrSplit(name, absl::MaxSplits('.', 1));
      const FilterValue value =
          all.ValueOf(Below(static_cast<uint32_t>(all.rows.size())), parts.first, parts.second);
      if (const auto* const t = std::get_if<std::string>(&value)) text = *t;
      if (const auto* const n = std::get_if<double>(&value)) text = absl::StrCat(*n);
      if (const auto* const b = std::get_if<bool>(&value)) return *b ? "true" : "false";
      if (const auto* const at = std::get_if<absl::Time>(&value))
        return absl::StrCat(
            "\"", absl::FormatTime("%Y-%m-%dT%H:%M:%E*SZ", *at, absl::UTCTimeZone()), "\"");
      if (const auto* const many = std::get_if<std::vector<std::string>>(&value))
        text = many->empty() ? "x" : many->front();
    }
    if (field.type == HistoryType::kBool) return "true";
    if (field.type == HistoryType::kTime) return "2026-01-01";
    if (field.type == HistoryType::kNumber || field.type == HistoryType::kInteger)
      return text.find_first_not_of("-0123456789.e") == std::string::npos ? text : "1";
    if (field.choices.empty() && text.size() > 1) {
      if (Below(4) == 0) text = text.substr(0, 1 + Below(static_cast<uint32_t>(text.size()))) + "*";
      if (Below(6) == 0) text = "*" + text.substr(text.size() / 2);
    }
    if (!field.choices.empty() && text == "0") text = std::string(field.choices.front());
    return field.type == HistoryType::kMap && Below(2) == 0 &&
                   text.find_first_not_of("0123456789") == std::string::npos
               ? text
               : absl::StrCat("\"", text, "\"");
  }

  std::string SomeTerm(HistoryKind kind, const Everything& all) {
    const std::vector<HistoryField>& fields = HistoryFields(kind);
    const HistoryField& field = fields[Below(static_cast<uint32_t>(fields.size()))];
    std::string name(field.name);
    if (field.type == HistoryType::kMap)
      absl::StrAppend(&name, ".",
                      std::vector<std::string>{"batch", "opt", "flag", "none"}[Below(4)]);
    const std::string value = SomeValue(all, field, name);
    std::vector<std::string> comparators = {"=", "!="};
    const bool is_ordered = field.type == HistoryType::kNumber ||
                            field.type == HistoryType::kInteger ||
                            field.type == HistoryType::kTime ||
                            (field.type == HistoryType::kMap && value.front() != '"');
    if (is_ordered) comparators = {"=", "!=", "<", "<=", ">", ">="};
    const bool is_text = field.type == HistoryType::kText || field.type == HistoryType::kTexts ||
                         field.type == HistoryType::kId;
    if (is_text) comparators.push_back(":");
    return absl::StrCat(name, comparators[Below(static_cast<uint32_t>(comparators.size()))], value);
  }

  std::string SomeFilter(HistoryKind kind, const Everything& all, int depth) {
    const uint32_t which = depth == 0 ? 0 : Below(5);
    if (which == 1) return absl::StrCat("NOT (", SomeFilter(kind, all, depth - 1), ")");
    if (which == 2 || which == 3)
      return absl::StrCat("(", SomeFilter(kind, all, depth - 1), which == 2 ? " AND " : " OR ",
                          SomeFilter(kind, all, depth - 1), ")");
    return SomeTerm(kind, all);
  }

  // Ids of a page's rows, of a question whose first column they are.
  static std::vector<std::string> Ids(const core::HistoryAnswer& answer) {
    std::vector<std::string> ids;
    for (const std::vector<core::HistoryValue>& row : answer.rows)
      ids.push_back(std::get<std::string>(row.front()));
    return ids;
  }

  // Over as many pages as it takes.
  std::vector<std::string> AllIds(core::HistoryQuestion question) {
    std::vector<std::string> ids;
    do {
      const auto answer = reader_->Ask(question);
      CHECK_OK(answer.status());
      const std::vector<std::string> page = Ids(*answer);
      ids.insert(ids.end(), page.begin(), page.end());
      question.page_token = answer->next_page_token;
    } while (!question.page_token.empty());
    return ids;
  }

  std::string ErrorOf(core::HistoryQuestion question) {
    question.viewer = kOperator;
    return std::string(reader_->Ask(question).status().message());
  }

  static inline const core::VisibleTo kOperator{.sees_all = true, .now_us = core::testing::kStart};

  std::mt19937 random_{kSeed};
  assay::testing::FakeClock clock_;
  assay::testing::TempDir dir_;
  const std::string path_ = dir_.Path("assay.db");
  std::unique_ptr<Store> store_ = *Store::Open(path_);
  core::testing::World world_{[this](const core::Outcome& outcome, const core::State& state) {
    CHECK_OK(store_->Commit(outcome, state));
  }};
  std::unique_ptr<HistoryReader> reader_;
};

}  // namespace assay::store

#endif  // TESTS_SERVER_STORE_HISTORY_FIXTURE_H_
