// What a run of the service logs, and the package that it exports, satisfy the checkers that
// MLCommons publishes on PyPI.

#include "tests/support/official_checker.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"

#include "common/file.h"
#include "common/sha256.h"
#include "tests/e2e/site.h"
#include "tests/support/write_file.h"

namespace assay::testing {
namespace {

using ::testing::HasSubstr;

// The full network of the round on two nodes; it reaches the target in about four epochs.
SubmissionText OfficialRound() {
  return {.round = "hpc-3.0.0", .dataset = "beacons", .epochs_max = 8, .more = ""};
}

// The first run of the entry once it has ended; the others need not be waited for.
Json FirstRun(const Site& site) {
  const Outcome followed = site.Assay({"logs", "r-1", "--follow", "--timeout", "8m"});
  EXPECT_EQ(followed.exit_code, 0) << followed.err;
  return site.AssayJson({"run", "show", "r-1"});
}

TEST(OfficialCheckerTest, AcceptsAClosedCosmoflowRunOfTheService) {
  Site site;
  std::string why_not;
  const std::string python = ProvideOfficialChecker(&why_not);
  if (python.empty()) GTEST_SKIP() << why_not;

  const Coordinator coordinator(&site);
  ProvideBeacons(site, "beacons", 512, 64);
  const std::string file = WriteSubmission(site, "closed.toml", OfficialRound());
  const Outcome submitted = site.Assay({"submit", file});
  ASSERT_EQ(submitted.exit_code, 0) << submitted.Text();

  const Json run = FirstRun(site);
  EXPECT_EQ(run["state"], "succeeded") << run;
  EXPECT_EQ(run["converged"], true) << run;
  EXPECT_EQ(run["compliant"], true) << run;
  EXPECT_LE(run["quality"], 0.124) << run;
  const Outcome cancelled = site.Assay({"cancel", "@last", "--reason", "one run is enough"});
  EXPECT_EQ(cancelled.exit_code, 0) << cancelled.Text();

  const Outcome logs = site.Assay({"logs", "r-1"});
  EXPECT_EQ(Sha256Hex(logs.out), ResultArtifact(run)["sha256"]);
  WriteFile(site.Path("result_0.txt"), logs.out);
  const Outcome verdict =
      site.RunProgram({python, "-m", "mlperf_logging.compliance_checker", "--usage", "hpc",
                       "--ruleset", "3.0.0", site.Path("result_0.txt")});
  EXPECT_EQ(verdict.exit_code, 0) << verdict.Text() << logs.out;
  EXPECT_THAT(absl::StrCat(verdict.out, verdict.err), HasSubstr("SUCCESS"));
}

TEST(OfficialCheckerTest, RejectsALogWithoutItsEnd) {
  // So that the acceptance above means something.
  const Site site;
  std::string why_not;
  const std::string python = ProvideOfficialChecker(&why_not);
  if (python.empty()) GTEST_SKIP() << why_not;
  WriteFile(site.Path("result_0.txt"),
            R"(:::MLLOG {"namespace": "", "time_ms": 1, "event_type": "POINT_IN_TIME", )"
            R"("key": "submission_benchmark", "value": "cosmoflow", "metadata": {}})"
            "\n");
  const Outcome verdict =
      site.RunProgram({python, "-m", "mlperf_logging.compliance_checker", "--usage", "hpc",
                       "--ruleset", "3.0.0", site.Path("result_0.txt")});
  EXPECT_NE(verdict.exit_code, 0) << verdict.Text();
}

// The official package checker ends with 0 whatever it finds; true if it finds nothing.
bool OfficialAccepts(const Site& site, const std::string& python, const std::string& package,
                     const std::string& round) {
  const Outcome checked =
      site.RunProgram({python, "-m", "mlperf_logging.package_checker", package, "hpc", round,
                       "--log_output", site.Path("package_checker.log")});
  return absl::StrContains(checked.Text(), "PACKAGE CHECKER FOUND NO ERRORS, SUCCESS");
}

// Both must agree; returns what they say.
bool BothAccept(const Site& site, const std::string& python, const std::string& package,
                const std::string& round = "3.0.0") {
  const Outcome ours = site.Assay({"package", "check", "--round", round, package});
  const bool theirs = OfficialAccepts(site, python, package, round);
  EXPECT_EQ(ours.exit_code, theirs ? 0 : 3) << ours.Text();
  return theirs;
}

// An open entry of a small network, because ten runs of the full one take hours.
TEST(OfficialCheckerTest, AcceptsAnExportedPackage) {
  Site site;
  std::string why_not;
  const std::string python = ProvideOfficialChecker(&why_not);
  if (python.empty()) GTEST_SKIP() << why_not;

  const Coordinator coordinator(&site);
  ProvideBeacons(site, "small", 256, 32);
  const SubmissionText entry = {.round = "hpc-3.0.0", .epochs_max = 40};
  const std::string file = site.Path("open.toml");
  WriteFile(file, absl::StrReplaceAll(entry.ToString(), {{"\"closed\"", "\"open\""}}));
  const Outcome submitted = site.Assay({"submit", file, "--wait"});
  ASSERT_EQ(submitted.exit_code, 0) << submitted.Text();
  const Outcome exported = site.Assay({"entry", "export", "@last", "package"});
  ASSERT_EQ(exported.exit_code, 0) << exported.Text();

  const std::string package = site.Path("package/Example");
  EXPECT_TRUE(BothAccept(site, python, package));

  // As closed it is also judged for its seeds and its convergence.
  const std::string description = JoinPath(package, "systems/this-host.json");
  const std::string text = ReadFile(description).value_or("");
  WriteFile(description, absl::StrReplaceAll(text, {{"\"open\"", "\"closed\""}}));
  BothAccept(site, python, package);
  WriteFile(description, text);

  // One run without its end is forgiven, two are not, nor is one run too few.
  const std::string results = JoinPath(package, "results/this-host/strong/cosmoflow");
  WriteFile(JoinPath(results, "result_1.txt"), "");
  EXPECT_TRUE(BothAccept(site, python, package));
  WriteFile(JoinPath(results, "result_2.txt"), "");
  EXPECT_FALSE(BothAccept(site, python, package));
  CHECK_OK(RemoveTree(JoinPath(results, "result_2.txt")));
  EXPECT_FALSE(BothAccept(site, python, package));
}

struct Damage {
  const char* name;
  const char*
      script;  // in the organisation's folder; $D: a result directory, $1, $2, ...: its logs
};

constexpr Damage kDamages[] = {
    {"none", ":"},
    {"a log too few", "rm $1"},
    {"a log too many", "cp $1 $D/result_99.txt"},
    {"an empty log", ": > $1"},
    {"two empty logs", ": > $1; : > $2"},
    {"a run without end", "sed -i /run_stop/d $1"},
    {"a damaged record", "echo ':::MLLOG {x' >> $1"},
    {"a record that kills the tool", "echo ':::MLLOG [1]' >> $1"},
    {"no seed", "sed -i '/\"seed\"/d' $1"},
    {"the same seed", "cp $1 $2"},
    {"seeds bypassed", "cp $1 $2; printf seed-checker-bypass > $D/package_checker_params"},
    {"seeds not bypassed", "cp $1 $2; echo seed-checker-bypass > $D/package_checker_params"},
    {"fast convergence", "sed -i 's/\"epoch_num\": [0-9]*/\"epoch_num\": 2/' $*"},
    {"convergence bypassed",
     "sed -i 's/\"epoch_num\": [0-9]*/\"epoch_num\": 2/' $*; "
     "printf rcp-bypass > $D/package_checker_params"},
    {"two runs aborted", "sed -i s/success/aborted/ $1 $2"},
    {"open", "sed -i s/closed/open/ systems/*"},
    {"no descriptions", "rm systems/*"},
    {"a member less", "sed -i s/cooling/heating/ systems/*"},
    {"a description too many", "echo '{}' > systems/other.json"},
    {"weak", "mv ${D%/*} ${D%/*/*}/weak"},
    {"neither strong nor weak", "mv ${D%/*} ${D%/*/*}/medium"},
    {"another benchmark", "mv $D ${D%/*}/resnet"},
    {"power of every run",
     "for f; do p=$D/power/$(basename $f .txt); mkdir -p $p; touch $p/node_0.txt; done"},
    {"power of all but two runs",
     "shift 2; for f; do p=$D/power/$(basename $f .txt); mkdir -p $p; touch $p/node_0.txt; done"},
    {"power without numbers",
     "for f; do p=$D/power/$(basename $f .txt); mkdir -p $p; touch $p/node.txt; done"},
};

TEST(OfficialCheckerTest, AgreesOnDamagedPackages) {
  const Site site;
  const std::string archive = OraclePath("hpc_results_v1.0.tar.xz");
  if (archive.empty()) GTEST_SKIP() << "the published logs are not in ASSAY_ORACLE_DIR";
  std::string why_not;
  const std::string python = ProvideOfficialChecker(&why_not);
  if (python.empty()) GTEST_SKIP() << why_not;
  const Outcome unpacked = site.RunProgram(
      {"/bin/tar", "-xJf", archive, "-C", site.Path("cache"), "hpc_results_v1.0/NCSA"});
  ASSERT_EQ(unpacked.exit_code, 0) << unpacked.Text();

  int accepted = 0;
  for (const Damage& damage : kDamages) {
    const std::string prepare = absl::StrCat(
        "rm -rf NCSA && cp -r cache/hpc_results_v1.0/NCSA . && cd NCSA && ",
        "D=$(ls -d results/*/strong/* | head -1) && set -- $D/result_* && ", damage.script);
    const Outcome prepared = site.RunProgram({"/bin/sh", "-c", prepare});
    ASSERT_EQ(prepared.exit_code, 0) << damage.name << prepared.Text();
    SCOPED_TRACE(damage.name);
    accepted += BothAccept(site, python, site.Path("NCSA"), "1.0.0");
  }
  EXPECT_GE(accepted, 6) << "some damages do no harm, or agreement would mean nothing";
  EXPECT_LE(accepted, 15);
}

}  // namespace
}  // namespace assay::testing
