// The figures of a real coordinator: that they count what happens, that Prometheus can read them,
// and that the manual, the alerts and the dashboard speak of those that there are.

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "common/file.h"
#include "tests/integration/service_fixture.h"
#include "tests/server/metrics/series.h"
#include "tests/support/await.h"
#include "tests/support/http_get.h"
#include "tests/support/temp_dir.h"
#include "yaml-cpp/yaml.h"

namespace assay::testing {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Optional;

// Metrics by name, and their types, as a scrape declares them.
using Types = std::map<std::string, std::string>;

// Where the text of a scrape, or of an expression, names metrics of ours; those of histograms
// without what Prometheus adds to them.
std::set<std::string> MetricsIn(absl::string_view text) {
  std::set<std::string> names;
  for (size_t at = text.find("assay_"); at != std::string::npos; at = text.find("assay_", at)) {
    const size_t end =
        std::min(text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", at), text.size());
    absl::string_view name = text.substr(at, end - at);
    for (const char* suffix : {"_bucket", "_count", "_sum"})
      absl::ConsumeSuffix(&name, suffix);
    names.insert(std::string(name));
    at = end;
  }
  return names;
}

Types TypesIn(absl::string_view scrape) {
  Types types;
  for (absl::string_view line : absl::StrSplit(scrape, '\n')) {
    if (!absl::ConsumePrefix(&line, "# TYPE ")) continue;
    const std::pair<std::string, std::string> metric = absl::StrSplit(line, ' ');
    types.insert(metric);
  }
  return types;
}

// Why promtool cannot be asked; empty if it can.
std::string PromtoolObstacle() {
  return std::system("command -v promtool > /dev/null") == 0
             ? ""
             : "promtool is not installed: apt-get install prometheus";
}

// What `promtool ARGUMENTS` says with `input`; empty if it is content.
std::string Promtool(const std::string& arguments, const std::string& input = "") {
  const TempDir dir;
  EXPECT_THAT(WriteFileAtomic(dir.Path("in"), input), IsOk());
  const std::string command =
      absl::StrCat("promtool ", arguments, " < ", dir.Path("in"), " > ", dir.Path("out"), " 2>&1");
  if (std::system(command.c_str()) == 0) return "";
  return absl::StrCat("promtool ", arguments, ": ", ReadFile(dir.Path("out")).value_or("?"));
}

class MetricsTest : public ServiceTest {
 protected:
  void SetUp() override { SetUpAt("127.0.0.1:0"); }
  void SetUpAt(const std::string& address) {
    ASSERT_THAT(deployment_.Start(absl::StrCat("metrics_address: \"", address,
                                               "\" notify { name: 'mail' command: ['/bin/sh', "
                                               "'-c', 'cat > /dev/null'] on: 'run.*' }")),
                IsOk());
    root_.emplace(deployment_.Unix());
    AddTinyDataset(&*root_);
  }

  // host:port from the file that tells where a daemon is; empty if there is none.
  std::string Address() const {
    const std::string text = ReadFile(deployment_.dir().Path("data/address")).value_or("");
    for (absl::string_view line : absl::StrSplit(text, '\n'))
      if (absl::ConsumePrefix(&line, "metrics ")) return std::string(line);
    return "";
  }
  HttpAnswer Ask(const std::string& path) const {
    const absl::StatusOr<HttpAnswer> answer = HttpGet(absl::StrCat("http://", Address(), path));
    EXPECT_THAT(answer, IsOk());
    return answer.value_or(HttpAnswer{});
  }
  std::string Scrape() const { return Ask("/metrics").body; }
  // The core is counted once a second.
  std::string ScrapeUntil(absl::string_view series, double value) const {
    std::string scrape;
    EXPECT_TRUE(Await([&] {
      scrape = Scrape();
      return ValueOf(scrape, series) == value;
    })) << series
        << " is not " << value << "\n"
        << scrape;
    return scrape;
  }

  // An entry of three runs, the first of which has been executed; scrapes in the middle and then.
  std::pair<std::string, std::string> ScrapeARun() {
    FakeWorker worker(deployment_.Worker("w0"), "w0");
    EXPECT_THAT(worker.Synchronize(absl::ZeroDuration()), IsOk());
    EXPECT_THAT(Create(&*root_, TinySpec("lab", 1)), IsOk());
    EXPECT_THAT(worker.AwaitRun(), IsOk());
    EXPECT_THAT(worker.SendLines({TinyLog()[0]}, 1), IsOk());
    std::pair<std::string, std::string> scrapes;
    scrapes.first = ScrapeUntil("assay_runs{state=\"running\"}", 1);
    EXPECT_THAT(worker.WalkOneRun(TinyLog()), IsOk());
    scrapes.second = ScrapeUntil("assay_runs_ended_total{state=\"succeeded\"}", 1);
    return scrapes;
  }
};

TEST_F(MetricsTest, WhatIsSubmittedExecutedAndJudgedIsCounted) {
  const auto [amid, after] = ScrapeARun();

  EXPECT_THAT(ValueOf(amid, "assay_submissions_created_total"), Optional(1.0));
  EXPECT_THAT(ValueOf(amid, "assay_runs_queued_total"), Optional(3.0));
  EXPECT_THAT(ValueOf(amid, "assay_runs{state=\"queued\"}"), Optional(2.0)) << amid;
  EXPECT_THAT(ValueOf(amid, "assay_worker_executing{worker=\"w0\"}"), Optional(1.0));
  EXPECT_THAT(ValueOf(amid, "assay_worker_event_lag_seconds{worker=\"w0\"}"), Optional(Ge(0.0)));
  EXPECT_THAT(ValueOf(amid, "assay_ready"), Optional(1.0));
  EXPECT_THAT(ValueOf(amid,
                      "assay_rpcs_total{code=\"OK\",method=\"assay.v1.SubmissionService/"
                      "CreateSubmission\"}"),
              Optional(1.0));
  EXPECT_THAT(ValueOf(after, "assay_run_events_committed_total"),
              Optional(static_cast<double>(TinyLog().size())));
  EXPECT_THAT(ValueOf(after, "assay_database_size_bytes"), Optional(Ge(4096.0)));
  ScrapeUntil("assay_notices_delivered_total{hook=\"mail\"}", 1);
  const absl::StatusOr<v1::Run> run = root_->Call(root_->submission(), &Submissions::GetRun, [] {
    v1::GetRunRequest request;
    request.set_name("runs/r-1");
    return request;
  }());
  ASSERT_THAT(run, IsOk());
  std::map<std::string, int> findings;
  for (const v1::Finding& finding : run->findings())
    ++findings[finding.rule()];
  ASSERT_FALSE(findings.empty());
  for (const auto& [rule, count] : findings)
    EXPECT_THAT(after, HasSubstr(absl::StrCat("assay_rule_findings_total{rule=\"", rule, "\"")));
}

TEST_F(MetricsTest, ACallThatIsRefusedIsCounted) {
  Client nobody(deployment_.Worker("w0"));
  EXPECT_THAT(nobody.Call(nobody.admin(), &Admin::ListTokens, v1::ListTokensRequest()),
              StatusIs(absl::StatusCode::kPermissionDenied));
  const std::string scrape = Scrape();

  EXPECT_THAT(ValueOf(scrape, "assay_refused_calls_total{code=\"PERMISSION_DENIED\"}"),
              Optional(1.0));
  EXPECT_THAT(ValueOf(scrape, "assay_refused_calls_total{code=\"UNAUTHENTICATED\"}"),
              Optional(0.0));
  EXPECT_THAT(ValueOf(scrape,
                      "assay_rpcs_total{code=\"PERMISSION_DENIED\",method=\"assay.v1."
                      "AdminService/ListTokens\"}"),
              Optional(1.0))
      << scrape;
}

TEST_F(MetricsTest, ProbesAnswer) {
  EXPECT_EQ(Ask("/healthz").status, 200);
  EXPECT_EQ(Ask("/readyz").status, 200);
  EXPECT_EQ(Ask("/").status, 200);
  EXPECT_EQ(Ask("/nothing").status, 404);
  EXPECT_THAT(deployment_.Terminate(), IsOkAndHolds(0));
}

// What people and files are told of is what there is.
TEST_F(MetricsTest, TheManualTheAlertsAndTheDashboardNameWhatThereIs) {
  const auto [amid, after] = ScrapeARun();
  Types types = TypesIn(amid);
  types.merge(TypesIn(after));

  Types told;
  const std::string manual = ReadFile(SOURCES "/docs/metrics.md").value_or("");
  for (const absl::string_view line : absl::StrSplit(manual, '\n')) {
    const std::vector<std::string> cells = absl::StrSplit(line, " | ");
    if (absl::StartsWith(line, "| `assay_") && cells.size() == 4)
      told.emplace(absl::StripSuffix(absl::StripPrefix(cells[0], "| `"), "`"), cells[1]);
  }
  EXPECT_EQ(told, types) << "docs/metrics.md (left) and the scrape (right)";

  for (const char* file : {"alerts.yml", "dashboard.json"}) {
    const std::string text = ReadFile(absl::StrCat(SOURCES "/deploy/prometheus/", file)).value();
    const std::set<std::string> named = MetricsIn(text);
    EXPECT_GE(named.size(), 10u) << file;
    for (const std::string& name : named)
      EXPECT_TRUE(types.contains(name)) << file << " names " << name;
  }
}

TEST_F(MetricsTest, PrometheusReadsTheScrape) {
  const auto [amid, after] = ScrapeARun();
  if (const std::string obstacle = PromtoolObstacle(); !obstacle.empty()) GTEST_SKIP() << obstacle;

  EXPECT_EQ(Promtool("check metrics", amid), "");
  EXPECT_EQ(Promtool("check metrics", after), "");
}

TEST(RulesTest, PrometheusTakesTheAlertsAndTheExpressionsOfTheDashboard) {
  if (const std::string obstacle = PromtoolObstacle(); !obstacle.empty()) GTEST_SKIP() << obstacle;
  EXPECT_EQ(Promtool("check config " SOURCES "/deploy/prometheus/prometheus.yml"), "");
  EXPECT_EQ(Promtool("test rules " SOURCES "/tests/metrics/alerts_test.yml"), "");

  const nlohmann::json board = nlohmann::json::parse(
      ReadFile(SOURCES "/deploy/prometheus/dashboard.json").value(), nullptr, false);
  ASSERT_FALSE(board.is_discarded());
  YAML::Node rules;
  for (const nlohmann::json& panel : board["panels"]) {
    for (const nlohmann::json& target : panel.value("targets", nlohmann::json::array())) {
      YAML::Node rule;
      rule["record"] = absl::StrCat("panel:", rules.size());
      rule["expr"] = absl::StrReplaceAll(target["expr"].get<std::string>(), {{"$instance", ".+"}});
      rules.push_back(rule);
    }
  }
  ASSERT_GE(rules.size(), 20u);
  YAML::Node group;
  group["name"] = "dashboard";
  group["rules"] = rules;
  YAML::Node file;
  file["groups"].push_back(group);
  const TempDir dir;
  ASSERT_THAT(WriteFileAtomic(dir.Path("rules.yml"), YAML::Dump(file)), IsOk());
  EXPECT_EQ(Promtool(absl::StrCat("check rules ", dir.Path("rules.yml"))), "");
}

class OtherAddressTest : public MetricsTest {
 protected:
  void SetUp() override {}
};

TEST_F(OtherAddressTest, NobodyListensWhereNoneIsGiven) {
  ASSERT_THAT(deployment_.Start(), IsOk());
  EXPECT_EQ(Address(), "");
}

TEST_F(OtherAddressTest, BeyondLoopbackItSpeaksHttps) {
  SetUpAt("0.0.0.0:0");
  const std::string port = Address().substr(Address().rfind(':'));
  const absl::StatusOr<HttpAnswer> answer = HttpGet(
      absl::StrCat("https://127.0.0.1", port, "/readyz"), "GET", deployment_.dir().Path("ca.crt"));
  ASSERT_THAT(answer, IsOk());
  EXPECT_EQ(answer->status, 200);
  EXPECT_THAT(HttpGet(absl::StrCat("http://127.0.0.1", port, "/readyz")),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(OtherAddressTest, ABadOneIsAProblemOfTheConfiguration) {
  const auto check = [this](const std::string& text) {
    std::string output;
    EXPECT_THAT(WriteFileAtomic(deployment_.dir().Path("checked.conf"), text), IsOk());
    EXPECT_THAT(
        deployment_.RunOnce(
            {absl::StrCat("--config=", deployment_.dir().Path("checked.conf")), "--check_config"},
            &output),
        IsOkAndHolds(2))
        << output;
    return output;
  };
  EXPECT_THAT(check(deployment_.Config("metrics_address: \"9464\"")),
              HasSubstr("metrics_address: \"9464\" is not host:port, like 127.0.0.1:9464"));
  deployment_.set_port("7443");
  EXPECT_THAT(check(deployment_.Config("metrics_address: \"127.0.0.1:7443\"")),
              HasSubstr("give it a port of its own"));
  EXPECT_THAT(check("data_directory: 'data' unix_socket_path: 's' launcher { kind: 'attach' } "
                    "metrics_address: '10.0.0.1:9464'"),
              AllOf(HasSubstr("is not loopback and needs tls"), HasSubstr("assay admin init")));
}

TEST_F(OtherAddressTest, AnAddressThatIsTakenKeepsItFromStarting) {
  SetUpAt("127.0.0.1:0");
  Deployment other;
  const absl::Status status =
      other.Start(absl::StrCat("metrics_address: \"", Address(), "\"")).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal,
                               AllOf(HasSubstr("metrics_address"), HasSubstr("cannot listen at"))));
}

}  // namespace
}  // namespace assay::testing
