// A package's verdict by `assay package check` and by the checker that MLCommons publishes on PyPI.

#ifndef TESTS_E2E_OFFICIAL_PACKAGE_H_
#define TESTS_E2E_OFFICIAL_PACKAGE_H_

#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

#include "tests/e2e/site.h"
#include "tests/support/official_checker.h"

namespace assay::testing {

// The official package checker ends with 0 whatever it finds; true if it finds nothing.
inline bool OfficialAccepts(const Site& site, const std::string& python, const std::string& package,
                            const std::string& round) {
  const Outcome checked =
      site.RunProgram({python, "-m", "mlperf_logging.package_checker", package, "hpc", round,
                       "--log_output", site.Path("package_checker.log")});
  return absl::StrContains(checked.Text(), "PACKAGE CHECKER FOUND NO ERRORS, SUCCESS");
}

// Both must agree; returns what they say.
inline bool BothAccept(const Site& site, const std::string& python, const std::string& package,
                       const std::string& round = "3.0.0") {
  const Outcome ours = site.Assay({"package", "check", "--round", round, package});
  const bool theirs = OfficialAccepts(site, python, package, round);
  EXPECT_EQ(ours.exit_code, theirs ? 0 : 3) << ours.Text();
  return theirs;
}

}  // namespace assay::testing

#endif  // TESTS_E2E_OFFICIAL_PACKAGE_H_
