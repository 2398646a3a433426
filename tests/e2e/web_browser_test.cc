// The site in Debian's Chromium, as tests/web/site_test.py looks at it: every page, with published
// results, an entry that has just been trained, and one whose names and log attack who shows them.
// With ASSAY_SCREENSHOTS=DIR the main pages are drawn there, as docs/screenshots has them.

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/process.h"
#include "tests/e2e/site.h"
#include "tests/support/held_port.h"
#include "tests/support/log_tail.h"
#include "tests/support/official_checker.h"
#include "tests/support/write_file.h"

namespace assay::testing {
namespace {

constexpr char kChromium[] = "/usr/bin/chromium";

class WebBrowserTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string archive = OraclePath("hpc_results_v0.7.tar.xz");
    if (archive.empty()) GTEST_SKIP() << "the published logs are not in ASSAY_ORACLE_DIR";
    if (!FileExists(kChromium)) {
      ASSERT_EQ(std::getenv("CI"), nullptr) << kChromium << " is missing";
      GTEST_SKIP() << "apt-get install chromium chromium-driver: " << kChromium << " is missing";
    }
    std::string why_not;
    python_ = ProvidePython({.folder = "browser",
                             .import = "playwright, axe_playwright_python",
                             .packages = {"playwright==1.65.2", "axe-playwright-python==0.1.8"}},
                            &why_not);
    if (python_.empty()) GTEST_SKIP() << why_not;
    coordinator_ = std::make_unique<Coordinator>(&site_);
    Expect({"/bin/tar", "-xJf", archive, "-C", site_.Path("cache")});
    StartWeb();
  }
  void TearDown() override {
    if (web_.has_value()) {
      EXPECT_TRUE(StopGroup(*web_, absl::Seconds(10)).ok());
    }
  }

  std::string Expect(const std::vector<std::string>& argv) const {
    const Outcome outcome = site_.RunProgram(argv);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.Text();
    return outcome.out;
  }
  void Import(const std::string& tree) const {
    Expect({site_.Program("assay"), "import", tree, "--round", "v0.7"});
  }

  void FillStore() {
    const std::string published = site_.Path("cache/hpc_results_v0.7");
    Import(published);
    Expect({"/usr/bin/python3", absl::StrCat(SOURCES, "/tests/web/hostile_tree.py"),
            absl::StrCat(published, "/CSCS/results/daint_gpu_n128_tf2.2.0/cosmoflow"),
            site_.Path("cache/hostile")});
    Import(site_.Path("cache/hostile"));
    ProvideBeacons(site_, "small", 32, 8);
    // What it is worth as a result is nothing to this test.
    site_.RunProgram({site_.Program("assay"), "submit", "--wait",
                      WriteSubmission(site_, "small.toml", {.epochs_max = 2})});
  }

  void StartWeb() {
    const char* const bin = std::getenv("ASSAY_BIN_DIR");
    const std::string program = JoinPath(bin == nullptr ? "build/dev/bin" : bin, "assay-web");
    // In place of the public's token an operator's, so that every page has something to show.
    const std::string token = site_.Path("operator.token");
    Expect({"/bin/sh", "-c",
            absl::StrCat(site_.Program("assay"),
                         " admin token create --principal looker --role operator > ", token)});
    WriteFile(site_.Path("etc/web.textproto"),
              absl::StrCat(
                  "listen_address: \"", port_.address(), "\"\nurl: \"", Url(),
                  "\"\nserver_address: \"", coordinator_->address(), "\"\nca_certificate_path: \"",
                  site_.Path("etc/ca.crt"), "\"\npublic_token_path: \"", token,
                  "\"\ncertificate_path: \"", site_.Path("etc/server.crt"), "\"\nkey_path: \"",
                  site_.Path("etc/server.key"), "\"\nconnections_per_address_max: 1000\n"));
    log_ = std::make_unique<LogTail>(site_.Path("web.fifo"));
    web_ = site_.Start({std::filesystem::absolute(program).string(),
                        absl::StrCat("--config=", site_.Path("etc/web.textproto"))},
                       log_->path());
    ASSERT_TRUE(log_->WaitFor(" serving ").has_value());
  }

  std::string Url() const { return absl::StrCat("https://", port_.address()); }

  // The id of the newest entry that fits a filter, and of its first run.
  std::pair<std::string, std::string> Newest(const std::vector<std::string>& filter) const {
    std::vector<std::string> query = {"query", "--limit", "1"};
    query.insert(query.end(), filter.begin(), filter.end());
    const Json found = site_.AssayJson(query);
    if (found["items"].empty()) return {};
    const Json& entry = found["items"][0];
    return {entry["id"].get<std::string>(), entry["runs"][0].get<std::string>()};
  }

  Site site_;
  HeldPort port_;
  std::string python_;
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<LogTail> log_;
  std::optional<ProcessId> web_;
};

TEST_F(WebBrowserTest, HasNoFaultThatABrowserFinds) {
  FillStore();
  const auto [entry, run] = Newest({"system=daint_gpu_n128*"});
  const auto [other, other_run] = Newest({"org=LBNL", "benchmark=deepcam"});
  const auto [hostile, hostile_run] = Newest({"system=sys_*"});
  const auto [trained, trained_run] = Newest({absl::StrCat("round=", kRound)});
  ASSERT_FALSE(entry.empty() || other.empty() || hostile.empty() || trained.empty());
  const std::vector<std::string> pages = {
      "/\thome",
      "/rounds/v0.7\tround",
      "/rounds/hpc-0.7.0/results\tresults",
      "/rounds/v0.7/results?benchmark=cosmoflow&division=closed&order=minutes&columns=minutes&"
      "columns=node_minutes&columns=optimizer",
      absl::StrCat("/entries/", entry, "\tentry"),
      absl::StrCat("/entries/", entry, "?x=seconds"),
      absl::StrCat("/entries/", entry, "/digest\tdigest"),
      absl::StrCat("/entries/", other),
      absl::StrCat("/entries/", hostile),
      absl::StrCat("/entries/", hostile, "/digest"),
      absl::StrCat("/runs/", run, "\trun"),
      absl::StrCat("/runs/", run, "/log\tlog"),
      absl::StrCat("/runs/", run, "/live"),
      absl::StrCat("/runs/", hostile_run),
      absl::StrCat("/runs/", hostile_run, "/log"),
      absl::StrCat("/runs/", hostile_run, "/live"),
      absl::StrCat("/compare?entry=", entry, "&entry=", other, "&entry=", hostile),
      absl::StrCat("/compare?entry=", entry, "+", other, "\tcompare"),
      "/scaling?filter=benchmark%3Dcosmoflow%20division%3Dclosed\tscaling",
      "/history\thistory",
      "/query?filter=minutes%3C100%20OR%20benchmark%3Ddeepcam&order=minutes\tquery",
      "/query?kind=run&filter=converged%3Dtrue&group_by=benchmark,round&aggregate=p50(minutes),"
      "count"
      "\tgroups",
      "/query?kind=finding",
      "/query?filter=organization%3D%22%3Cscript%3E%22",
      "/fleet\tfleet",
      "/audit",
      "/rules\trules",
      "/rules?round=hpc-1.0.0",
      "/rules/R-TIM-001\trule",
      "/rules/R-HP-004",
      "/help\thelp"};
  const std::string list = site_.Path("pages.txt");
  WriteFile(list, absl::StrJoin(pages, "\n"));
  std::vector<std::string> argv = {python_, absl::StrCat(SOURCES, "/tests/web/site_test.py"), Url(),
                                   "--pages", list};
  if (const char* const folder = std::getenv("ASSAY_SCREENSHOTS"); folder != nullptr)
    argv.insert(argv.end(), {"--screenshots", folder});
  const Outcome outcome = site_.RunProgram(argv);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.Text();
}

TEST_F(WebBrowserTest, ManyTabsFollowARunWithFewStreams) {
  ProvideBeacons(site_, "small", 32, 8);
  // Without an end of its own.
  Expect({site_.Program("assay"), "submit",
          WriteSubmission(site_, "long.toml",
                          {.epochs_max = 2000, .base_learning_rate = "0.000001"})});
  const Outcome outcome =
      site_.RunProgram({python_, absl::StrCat(SOURCES, "/tests/web/live_test.py"), Url(), "--run",
                        "r-1", "--end", site_.Program("assay"), "cancel", "e-1"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.Text();
}

}  // namespace
}  // namespace assay::testing
