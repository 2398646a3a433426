// assay history export against a real coordinator: the database has what `assay query` tells the
// same caller, and nothing else. It is read by Python's sqlite3.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "nlohmann/json.hpp"

#include "common/client/history.h"
#include "common/file.h"
#include "common/history_fields.h"
#include "common/process.h"
#include "tests/cli/invocation.h"
#include "tests/integration/service_fixture.h"

namespace assay::testing {
namespace {

using cli::ExitStatus;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kRows[] =
    "import json, sqlite3, sys\n"
    "db = sqlite3.connect(f'file:{sys.argv[1]}?mode=ro', uri=True)\n"
    "db.row_factory = sqlite3.Row\n"
    "print(json.dumps([dict(row) for row in db.execute(sys.argv[2])]))\n";

const char* TableOf(HistoryKind kind) {
  switch (kind) {
    case HistoryKind::kEntry:
      return "entries";
    case HistoryKind::kRun:
      return "runs";
    case HistoryKind::kFinding:
      return "findings";
    case HistoryKind::kWorker:
      return "workers";
    case HistoryKind::kHyperparameter:
      return "hyperparameters";
  }
  return "";
}

const absl::Time kLater = absl::Now() + absl::Hours(1000);  // not published

class HistoryExportTest : public ServiceTest {
 protected:
  void SetUp() override {
    ServiceTest::SetUp();
    const std::string log = absl::StrCat(absl::StrJoin(TinyLog(), "\n"), "\n");
    Import("Ours", "OurMachine", log, kLater);
    Import("Rival", "SecretMachine", log + " ", kLater);
    Import("Rival", "PublishedMachine", log + "\n", absl::Now() - absl::Hours(1));
  }

  void Import(const std::string& organization, const std::string& system, const std::string& log,
              absl::Time published) {
    v1::SubmissionSpec spec = TinySpec(organization, 1);
    spec.set_system(system);
    ImportEntry(spec, log, published);
  }

  // Commands of the operator, or of whoever has the token.
  void BeOperator() {
    for (const char* const name : {"ASSAY_SERVER", "ASSAY_CA", "ASSAY_TOKEN"})
      run_.env.variables.erase(name);
    run_.env.variables["ASSAY_SOCKET"] = deployment_.Unix().target.substr(sizeof("unix:") - 1);
  }
  void Be(const std::string& role, const std::string& organization) {
    v1::CreateTokenRequest request;
    request.set_request_id(MakeUuid());
    request.mutable_token()->set_kind(v1::Token::ACCESS);
    request.mutable_token()->set_role(role);
    request.mutable_token()->set_principal("ann");
    request.mutable_token()->set_organization(organization);
    const auto created = root_->Call(root_->admin(), &Admin::CreateToken, request);
    ASSERT_THAT(created, IsOk());
    run_.env.variables.erase("ASSAY_SOCKET");
    run_.env.variables["ASSAY_SERVER"] = deployment_.Tls().target;
    run_.env.variables["ASSAY_CA"] = run_.Write("ca.pem", deployment_.ca().certificate_pem);
    run_.env.variables["ASSAY_TOKEN"] = created->secret();
  }

  void Export(const std::string& arguments = "") {
    ASSERT_EQ(run_.Run(absl::StrCat("history export out.sqlite --force ", arguments)),
              ExitStatus::kDone)
        << run_.err;
  }

  // What a statement gives, as an analyst's Python sees it.
  json Ask(const std::string& sql) {
    const std::string out = run_.home.Path("rows.json");
    EXPECT_THAT(RemoveTree(out), IsOk());  // of the question before
    const absl::StatusOr<ProcessId> process =
        Spawn({.argv = {"/usr/bin/python3", "-c", kRows, run_.home.Path("out.sqlite"), sql},
               .output_path = out});
    EXPECT_THAT(process, IsOk());
    EXPECT_EQ(*WaitForExit(*process, absl::Minutes(1)), 0) << *ReadFile(out);
    return json::parse(*ReadFile(out), nullptr, false);
  }

  // The rows of a kind as `assay query` tells them, in the form of the database.
  json Told(HistoryKind kind) {
    std::vector<std::string> columns;
    for (const HistoryField& field : HistoryFields(kind))
      if (field.type != HistoryType::kMap && !field.is_private) columns.emplace_back(field.name);
    EXPECT_EQ(run_.Run(absl::StrCat("query -o json --kind ", ToString(kind), " --columns ",
                                    absl::StrJoin(columns, ","))),
              ExitStatus::kDone)
        << run_.err;
    json rows = json::parse(run_.out, nullptr, false)["items"];
    for (json& row : rows) {
      for (const HistoryField& field : HistoryFields(kind)) {
        const std::string name = client::ExportName(field.name, field.unit);
        json& value = row[name];  // null where it is not told
        if (field.type == HistoryType::kMap || field.is_private) row.erase(name);
        if (value.is_null()) continue;
        if (field.type == HistoryType::kBool) value = value.get<bool>() ? 1 : 0;
        if (field.type == HistoryType::kTexts) value = value.dump();
        absl::Time time;
        std::string error;
        if (field.type != HistoryType::kTime) continue;
        EXPECT_TRUE(absl::ParseTime(absl::RFC3339_full, value.get<std::string>(), &time, &error));
        value = absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", time, absl::UTCTimeZone());
      }
    }
    return rows;
  }

  Invocation run_;
};

// Rows in any order, without what only their owner is told.
std::vector<std::string> Sorted(const json& rows, HistoryKind kind) {
  std::vector<std::string> texts;
  for (json row : rows) {
    for (const HistoryField& field : HistoryFields(kind))
      if (field.is_private) row.erase(std::string(field.name));
    texts.push_back(row.dump());
  }
  std::sort(texts.begin(), texts.end());
  return texts;
}

TEST_F(HistoryExportTest, HasWhatTheQueryTellsTheSameCaller) {
  BeOperator();
  for (const char* const role : {"operator", "reviewer", "submitter"}) {
    if (role != std::string("operator")) Be(role, role == std::string("submitter") ? "Ours" : "");
    Export();
    for (const HistoryKind kind : kHistoryKinds) {
      const json rows = Ask(absl::StrCat("SELECT * FROM ", TableOf(kind)));
      EXPECT_EQ(Sorted(rows, kind), Sorted(Told(kind), kind)) << role << " " << ToString(kind);
      EXPECT_EQ(rows.empty(), kind == HistoryKind::kWorker) << role << " " << ToString(kind);
    }
    EXPECT_EQ(Ask("SELECT value FROM meta WHERE key = 'role'")[0]["value"], role);
  }
}

TEST_F(HistoryExportTest, HasNothingOfRivals) {
  Be("submitter", "Ours");
  Export();

  const json entries = Ask("SELECT organization, system, submitter FROM entries ORDER BY id");
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0]["system"], "OurMachine");
  EXPECT_EQ(entries[1]["system"], "PublishedMachine");
  // Who sent it is the owner's to know, whether it is published or not.
  EXPECT_FALSE(entries[0]["submitter"].is_null());
  EXPECT_TRUE(entries[1]["submitter"].is_null());
  EXPECT_THAT(*ReadFile(run_.home.Path("out.sqlite")), Not(HasSubstr("SecretMachine")));
  BeOperator();
  Export();
  EXPECT_THAT(*ReadFile(run_.home.Path("out.sqlite")), HasSubstr("SecretMachine"));
}

// More entries than one filter can name.
TEST_F(HistoryExportTest, AFilterBringsAllThatBelongsToItsEntries) {
  const std::string log = absl::StrCat(absl::StrJoin(TinyLog(), "\n"), "\n");
  for (int i = 0; i < 60; ++i)
    Import("Ours", "Many", absl::StrCat(log, std::string(static_cast<size_t>(i + 2), ' ')), kLater);
  BeOperator();
  Export("system=Many");

  EXPECT_EQ(Ask("SELECT count(*) AS n FROM entries")[0]["n"], 60);
  EXPECT_EQ(Ask("SELECT count(*) AS n FROM runs")[0]["n"], 60);
  EXPECT_EQ(Ask("SELECT count(*) AS n FROM runs JOIN entries ON entries.id = runs.entry")[0]["n"],
            60);
  EXPECT_EQ(Ask("SELECT count(DISTINCT entry) AS n FROM hyperparameters")[0]["n"], 60);
  EXPECT_EQ(Ask("SELECT value FROM meta WHERE key = 'filter'")[0]["value"], "system=Many");
  EXPECT_THAT(Ask("SELECT name FROM sqlite_master WHERE name = 'workers'"), IsEmpty());

  Export("--kind hyperparameter key=opt_name");
  EXPECT_EQ(Ask("SELECT DISTINCT text FROM hyperparameters")[0]["text"], "sgd");
  EXPECT_THAT(Ask("SELECT name FROM sqlite_master WHERE name = 'entries'"), IsEmpty());
}

// Each statement that the reviewers' guide shows.
TEST_F(HistoryExportTest, AnswersTheQuestionsOfTheManual) {
  BeOperator();
  Export();
  const std::string manual = *ReadFile(REVIEWER_GUIDE);
  const std::vector<std::string> parts = absl::StrSplit(manual, "```sql\n");
  ASSERT_GT(parts.size(), 1U);
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::string sql = parts[i].substr(0, parts[i].find("```"));
    EXPECT_FALSE(Ask(sql).empty()) << sql;
  }
  EXPECT_EQ(Ask("SELECT unit FROM columns WHERE table_name = 'entries' AND name = "
                "'epoch_seconds'")[0]["unit"],
            "s");
}

TEST_F(HistoryExportTest, ReplacesAFileOnlyIfToldTo) {
  BeOperator();
  run_.Write("out.sqlite", "precious");
  EXPECT_EQ(run_.Run("history export out.sqlite"), ExitStatus::kConflict);
  EXPECT_THAT(run_.err, AllOf(HasSubstr("out.sqlite is there already"), HasSubstr("--force")));

  EXPECT_EQ(run_.Run("history export out.sqlite --force round=v9.9"), ExitStatus::kNotFound);
  EXPECT_EQ(run_.Run("history export out.sqlite --force minuts<1"), ExitStatus::kUsage);
  EXPECT_EQ(*ReadFile(run_.home.Path("out.sqlite")), "precious");
  const std::vector<std::string> names = *ListDirectory(run_.home.path());
  for (const std::string& name : names)
    EXPECT_FALSE(absl::StrContains(name, ".tmp")) << name;
}

}  // namespace
}  // namespace assay::testing
