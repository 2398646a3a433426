// What must hold for the readers of a package's small files whatever their bytes. Shared by the
// smoke test, which mutates a small corpus, and by the libFuzzer targets.

#ifndef TESTS_FUZZ_PACKAGE_PROPERTIES_H_
#define TESTS_FUZZ_PACKAGE_PROPERTIES_H_

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

#include "common/log.h"
#include "common/package/checker_params.h"
#include "common/package/json_file.h"
#include "common/package/power.h"
#include "common/package/seeds.h"
#include "common/package/system_description.h"
#include "common/package/text.h"

namespace assay::testing {

// A finding fits on one line of a terminal and names its rule.
inline void CheckFinding(const rules::Finding& finding) {
  CHECK(!finding.rule_id.empty() && !finding.error_class.empty() && !finding.expected.empty());
  CHECK(package::Printable(finding.found, 10000) == finding.found) << finding.found;
  CHECK(!absl::StrContains(rules::Format("path", finding), '\n'));
}

// Printing twice is printing once; nothing but text remains.
inline void CheckPrintable(absl::string_view bytes) {
  const std::string shown = package::Printable(bytes);
  CHECK(package::Printable(shown, 10000) == shown);
  CHECK(std::none_of(shown.begin(), shown.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20; }));
}

// package_checker_params, and the same bytes as anything else beside the logs.
inline void CheckParamsProperties(absl::string_view bytes) {
  const package::CheckerParams params = package::ParseCheckerParams(bytes);
  for (const rules::Finding& finding : params.findings)
    CheckFinding(finding);
  CHECK(!params.bypasses_rcp || absl::EndsWith(bytes, "rcp-bypass"));
  CHECK(!params.bypasses_seeds || absl::EndsWith(bytes, "seed-checker-bypass"));
  CheckPrintable(bytes);
  if (const auto number = package::PythonInt(bytes); number.has_value())
    CHECK(package::PythonInt(*number) == number);
  if (const auto factor = package::ParseScalingFactor(bytes); factor.ok()) CHECK(*factor >= 1);
  package::SeedCheck seeds;
  seeds.AddLog("result_1.txt", bytes);
  for (const package::SeedFinding& found : seeds.findings())
    CheckFinding(found.finding);
  CHECK(!seeds.passed() || !bytes.empty());
  const std::vector<std::string> runs = {"result_1", "result_2"};
  const std::vector<package::PowerFolder> power = {{"result_1", {std::string(bytes)}},
                                                   {"result_2", {"node_0.txt"}}};
  for (const rules::Finding& finding : package::CheckPower(runs, power).findings)
    CheckFinding(finding);
}

// A description passes exactly if nothing is an error, and says the same when read again.
inline void CheckDescriptionProperties(absl::string_view bytes) {
  const auto findings =
      package::CheckSystemDescription(bytes, {.organization = "ORG", .system = "sys"});
  for (const rules::Finding& finding : findings)
    CheckFinding(finding);
  const absl::StatusOr<JsonValue> json = package::ParseJsonFile(bytes);
  if (!json.ok()) {
    CHECK(findings.size() == 1 && findings[0].rule_id == "R-DESC-001");
    return;
  }
  const absl::StatusOr<JsonValue> again = package::ParseJsonFile(DumpJson(*json));
  CHECK(again.ok() && PythonSame(*json, *again));
}

}  // namespace assay::testing

#endif  // TESTS_FUZZ_PACKAGE_PROPERTIES_H_
