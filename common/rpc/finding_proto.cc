#include "common/rpc/finding_proto.h"

namespace assay {

v1::Finding FindingToProto(const rules::Finding& finding) {
  v1::Finding message;
  message.set_rule(finding.rule_id);
  message.set_severity(finding.severity == rules::Severity::kError ? v1::Finding::ERROR
                                                                   : v1::Finding::WARNING);
  message.set_error_class(finding.error_class);
  message.set_key(finding.key);
  message.set_line(finding.line);
  message.set_expected(finding.expected);
  message.set_found(finding.found);
  message.set_remedy(finding.remedy);
  return message;
}

rules::Finding FindingFromProto(const v1::Finding& message) {
  return {.rule_id = message.rule(),
          .severity = message.severity() == v1::Finding::WARNING ? rules::Severity::kWarning
                                                                 : rules::Severity::kError,
          .error_class = message.error_class(),
          .line = message.line(),
          .key = message.key(),
          .expected = message.expected(),
          .found = message.found(),
          .remedy = message.remedy()};
}

}  // namespace assay
