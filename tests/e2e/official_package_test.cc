// Damaged packages are refused by `assay package check` where the checker that MLCommons publishes
// on PyPI refuses them.

#include "tests/e2e/official_package.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace assay::testing {
namespace {

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

TEST(OfficialPackageTest, AgreesOnDamagedPackages) {
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
