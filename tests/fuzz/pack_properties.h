// What must hold for the reader of rule packs whatever the bytes: a pack is refused, or it judges
// without a fault and means the same when written and read again.

#ifndef TESTS_FUZZ_PACK_PROPERTIES_H_
#define TESTS_FUZZ_PACK_PROPERTIES_H_

#include <string>

#include "absl/strings/string_view.h"

#include "common/json_reader.h"
#include "common/log.h"
#include "common/rules/check.h"
#include "common/rules/pack.h"
#include "tests/rules/sample_log.h"

namespace assay::testing {

inline void CheckRules(const rules::RuleSetData& data) {
  const rules::RuleSet rules(data);
  static const std::string* const log = new std::string(DeepcamLog().Text());
  for (const rules::Finding& finding : rules::Check(*log, rules).findings)
    CHECK(!rules::Format("log", finding).empty());
  const absl::StatusOr<rules::Pack> again = rules::ReadPack(rules::WritePack(data, ""), "again");
  CHECK_OK(again.status());
  CHECK(again->digest == rules.digest());
}

inline void CheckPackProperties(absl::string_view bytes) {
  const absl::StatusOr<rules::Pack> pack = rules::ReadPack(bytes, "pack");
  if (pack.ok()) CheckRules(pack->data);
  // Without a good digest nothing of a pack is used, so look behind it as well.
  const JsonResult json = ParseJson(bytes);
  if (json.error != JsonError::kNone) return;
  const JsonValue* round = json.value.Find("round");
  const absl::StatusOr<rules::RuleSetData> data =
      rules::RuleSetFromJson(round == nullptr ? json.value : *round);
  if (data.ok()) CheckRules(*data);
}

}  // namespace assay::testing

#endif  // TESTS_FUZZ_PACK_PROPERTIES_H_
