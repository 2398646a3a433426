// `cmake --install` into any prefix gives programs that find what they need beside them, and each
// other.

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

#include "common/file.h"
#include "tests/e2e/site.h"
#include "tests/support/status_matchers.h"

namespace assay::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr absl::Duration kPatience = absl::Minutes(1);

// All programs below PREFIX/bin of a site, in place of those that lie in its own bin.
class InstallTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    site_ = new Site;
    const char* const folder = std::getenv("ASSAY_BIN_DIR");
    const std::string build = folder == nullptr ? BUILD : absl::StrCat(folder, "/..");
    for (const char* component : {"cli", "server", "worker"}) {
      const Outcome installed = site_->RunProgram(
          {CMAKE, "--install", build, "--prefix", site_->Path("opt"), "--component", component});
      ASSERT_EQ(installed.exit_code, 0) << installed.Text();
    }
  }
  static void TearDownTestSuite() { delete site_; }
  static std::string Installed(absl::string_view name) {
    return site_->Path(absl::StrCat("opt/bin/", name));
  }

  static Site* site_;
};

Site* InstallTest::site_ = nullptr;

TEST_F(InstallTest, AnInstalledPrefixHasARound) {
  const Outcome made = site_->RunProgram({Installed("assay"), "admin", "init", "etc"});

  ASSERT_EQ(made.exit_code, 0) << made.Text();
  EXPECT_THAT(ReadFile(site_->Path("etc/assayd.textproto")).value_or(""),
              HasSubstr("opt/share/assay/rounds/cosmoflow-mini.toml"));
}

TEST_F(InstallTest, AnInstalledCoordinatorHasItsAlertsAndDashboard) {
  for (const char* file : {"alerts.yml", "dashboard.json", "prometheus.yml"}) {
    EXPECT_THAT(
        ReadFile(site_->Path(absl::StrCat("opt/share/assay/prometheus/", file))).value_or(""),
        HasSubstr("assay"))
        << file;
  }
}

// Both want rounds; the quickstart also its submission, and three minutes, which nobody waits here.
TEST_F(InstallTest, DevStartsFromAnyPrefix) {
  LogTail output(site_->Path("dev.fifo"));
  const ProcessId process =
      site_->Start({Installed("assay"), "dev", "--workers", "2"}, output.path());

  EXPECT_TRUE(output.WaitFor("Ctrl-C ends it").has_value()) << "set ASSAY_SHOW_LOG to see why";
  const Outcome rounds = site_->RunProgram({Installed("assay"), "rules", "list"});
  EXPECT_THAT(rounds.out, HasSubstr("cosmoflow-mini")) << rounds.Text();
  const Outcome plan = site_->RunProgram(
      {Installed("assay"), "plan", site_->Path("opt/share/assay/quickstart/cosmoflow-mini.toml")});
  EXPECT_THAT(plan.Text(), Not(HasSubstr("no round"))) << plan.Text();

  EXPECT_THAT(SignalGroup(process, SIGINT), IsOk());
  EXPECT_THAT(WaitForExit(process, kPatience), IsOkAndHolds(0));
}

TEST_F(InstallTest, DaemonsListTheirOptions) {
  const Outcome daemon = site_->RunProgram({Installed("assayd"), "--help"});
  for (const char* option : {"--config", "--check_config", "--verify", "--accept_data_loss"})
    EXPECT_THAT(daemon.out, HasSubstr(option)) << daemon.Text();
  EXPECT_THAT(daemon.Text(), Not(HasSubstr("No flags matched")));

  for (const char* program : {"assay-worker", "assay-privileged", "assay-train"}) {
    const Outcome help = site_->RunProgram({Installed(program), "--help"});
    EXPECT_EQ(help.exit_code, 0) << help.Text();
    EXPECT_THAT(help.out, HasSubstr(absl::StrCat("Usage: ", program))) << help.Text();
  }
}

// Each option that the daemon names in its help stands in its page of section 8, which is written
// by hand.
TEST_F(InstallTest, ManPagesHaveTheOptionsOfTheDaemon) {
  const std::string page = ReadFile(PAGES "/assayd.8").value_or("");
  const Outcome help = site_->RunProgram({Installed("assayd"), "--help"});
  int option_count = 0;
  for (size_t at = help.out.find("    --"); at != std::string::npos;
       at = help.out.find("    --", at + 1)) {
    const std::string option = help.out.substr(at + 6, help.out.find(' ', at + 6) - at - 6);
    EXPECT_THAT(page, HasSubstr(absl::StrCat("\\-\\-", option))) << "deploy/man/assayd.8";
    ++option_count;
  }
  EXPECT_GE(option_count, 5) << help.Text();
}

}  // namespace
}  // namespace assay::testing
