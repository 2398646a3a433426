// The stored answers of the official tools, and the published logs they are about.

#ifndef TESTS_RULES_ORACLE_H_
#define TESTS_RULES_ORACLE_H_

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/json_reader.h"
#include "common/log.h"
#include "common/process.h"

namespace assay::testing {

// The folder with the archives and official/.
inline std::string OracleDir() {
  const char* dir = std::getenv("ASSAY_ORACLE_DIR");
  return dir == nullptr ? "../shared/data" : dir;
}

inline bool HasOracle() {
  return FileExists(OracleDir() + "/official");
}

// Skips the test where the oracle data is absent; fails it there under CI.
#define REQUIRE_ORACLE()                                                               \
  do {                                                                                 \
    if (!::assay::testing::HasOracle()) {                                              \
      if (std::getenv("CI") != nullptr) FAIL() << "no oracle data in " << OracleDir(); \
      GTEST_SKIP() << "no oracle data in " << OracleDir() << "; set ASSAY_ORACLE_DIR"; \
    }                                                                                  \
  } while (false)

// Unpacks OracleDir()/`archive` into `target`.
inline void Unpack(const std::string& archive, const std::string& target) {
  const absl::StatusOr<ProcessId> tar = Spawn(
      {.argv = {"/usr/bin/env", "tar", "-xJf", JoinPath(OracleDir(), archive), "-C", target}});
  CHECK_OK(tar.status());
  const absl::StatusOr<int> exit_code = WaitForExit(*tar, absl::Minutes(5));
  CHECK_OK(exit_code.status());
  CHECK(*exit_code == 0) << "archive=" << archive << " exit_code=" << *exit_code;
}

inline JsonValue ReadJsonFile(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  CHECK_OK(text.status());
  JsonResult result = ParseJson(*text);
  CHECK(result.error == JsonError::kNone) << "path=" << path;
  return std::move(result.value);
}

inline std::vector<JsonValue> ReadJsonLines(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  CHECK_OK(text.status());
  std::vector<JsonValue> rows;
  for (size_t begin = 0; begin < text->size();) {
    const size_t end = std::min(text->find('\n', begin), text->size());
    JsonResult row = ParseJson(absl::string_view(*text).substr(begin, end - begin));
    CHECK(row.error == JsonError::kNone) << "path=" << path << " offset=" << begin;
    rows.push_back(std::move(row.value));
    begin = end + 1;
  }
  return rows;
}

inline std::string Text(const JsonValue& row, absl::string_view name) {
  const JsonValue* member = row.Find(name);
  return member == nullptr || member->AsString() == nullptr ? "" : *member->AsString();
}

}  // namespace assay::testing

#endif  // TESTS_RULES_ORACLE_H_
