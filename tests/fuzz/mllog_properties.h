// What must hold for the log reader and the check whatever the bytes. Shared by the smoke test,
// which mutates a small corpus, and by the libFuzzer target.

#ifndef TESTS_FUZZ_MLLOG_PROPERTIES_H_
#define TESTS_FUZZ_MLLOG_PROPERTIES_H_

#include <string>

#include "absl/strings/string_view.h"

#include "common/json_reader.h"
#include "common/log.h"
#include "common/mllog.h"
#include "common/rules/check.h"
#include "common/rules/registry.h"

namespace assay::testing {

// A value that was read is the same after writing and reading it again.
inline void CheckJsonRoundTrip(absl::string_view json) {
  const JsonResult first = ParseJson(json);
  if (first.error != JsonError::kNone) return;
  const JsonResult second = ParseJson(DumpJson(first.value));
  CHECK(second.error == JsonError::kNone);
  CHECK(PythonSame(first.value, second.value));
  CHECK(PythonStr(first.value) == PythonStr(second.value));
}

// Every line has one outcome, and a record has its members as JSON.
inline void CheckLine(absl::string_view line) {
  const MllogLine read = ReadMllogLine(line);
  if (read.outcome != MllogOutcome::kRecord) return;
  std::string storage;
  MllogKey(read, &storage);
  for (const absl::string_view json : {read.key_json, read.value_json, read.metadata_json}) {
    CHECK(ParseJson(json).error == JsonError::kNone);
    CheckJsonRoundTrip(json);
  }
}

// Judging line by line says the same as judging the whole; aborts the process otherwise.
inline void CheckMllogProperties(absl::string_view bytes) {
  const rules::RuleSet& round = *rules::FindRuleSet("3.0.0");
  rules::LiveChecker live(round);
  MllogLines lines(bytes);
  for (absl::string_view line; lines.Next(&line);) {
    CheckLine(line);
    live.AddLine(line);
  }
  const rules::CheckResult whole = rules::Check(bytes, round);
  CHECK(whole.findings == live.Finish().findings);
  CHECK(whole.pass == live.Finish().pass);
  rules::StreamChecker stream(round);
  constexpr size_t kPieceBytes = 7;  // so that every kind of line end falls between two pieces
  for (size_t i = 0; i < bytes.size(); i += kPieceBytes)
    stream.Add(bytes.substr(i, kPieceBytes));
  CHECK(whole.findings == stream.Finish().findings);
  for (const rules::Finding& finding : whole.findings) {
    CHECK(!finding.rule_id.empty() && !finding.error_class.empty());
    CHECK(!rules::Format("log", finding).empty());
  }
  CheckJsonRoundTrip(bytes);
}

}  // namespace assay::testing

#endif  // TESTS_FUZZ_MLLOG_PROPERTIES_H_
