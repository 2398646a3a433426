#include "common/package/seeds.h"

#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/json_reader.h"
#include "common/mllog.h"
#include "common/package/findings.h"
#include "common/package/text.h"

namespace assay::package {
namespace {

constexpr int kShownPerLog = 5;

// Python's int(double) in decimal; nullopt for NaN and infinity.
std::optional<std::string> Truncated(double value) {
  if (!std::isfinite(value)) return std::nullopt;
  const std::string digits = absl::StrFormat("%.0f", std::trunc(value));
  return digits == "-0" ? "0" : digits;
}

// Python's int(value) in decimal; nullopt where it raises an exception.
std::optional<std::string> IntOf(const JsonValue& value) {
  if (const auto truth = value.AsBool(); truth.has_value()) return *truth ? "1" : "0";
  if (const auto number = value.AsInt64(); number.has_value()) return absl::StrCat(*number);
  if (const auto* big = std::get_if<BigInteger>(&value.variant())) return big->digits;
  if (const auto* real = std::get_if<double>(&value.variant())) return Truncated(*real);
  return value.AsString() == nullptr ? std::nullopt : PythonInt(*value.AsString());
}

// A text that is equal for two values exactly if Python finds them equal as members of a key;
// nullopt for lists and objects, which it refuses as keys.
std::optional<std::string> KeyOf(const JsonValue& value) {
  if (value.is_null()) return "null";
  if (const std::string* text = value.AsString(); text != nullptr) return absl::StrCat("s", *text);
  if (const auto* real = std::get_if<double>(&value.variant());
      real != nullptr && (!std::isfinite(*real) || *real != std::trunc(*real)))
    return absl::StrFormat("d%.17g", *real);
  const std::optional<std::string> number = IntOf(value);
  if (!number.has_value()) return std::nullopt;
  return absl::StrCat("i", *number);
}

}  // namespace

bool SeedCheck::AddSeed(int64_t line, const JsonValue& value, const JsonValue& metadata,
                        LogSeeds* log) {
  const auto fail = [&](absl::string_view reason) {
    log->bad_line = line;
    log->bad_reason = std::string(reason);
    return false;
  };
  const JsonValue* file = metadata.Find("file");
  const JsonValue* lineno = metadata.Find("lineno");
  if (file == nullptr || lineno == nullptr) return fail("metadata without file or lineno");
  const std::optional<std::string> number = IntOf(value);
  if (!number.has_value()) return fail(absl::StrCat("the seed ", DumpJson(value).substr(0, 60)));
  const std::optional<std::string> file_key = KeyOf(*file);
  const std::optional<std::string> lineno_key = KeyOf(*lineno);
  if (!file_key.has_value() || !lineno_key.has_value())
    return fail("file or lineno that is a list or an object");
  log->seeds.push_back({.line = line,
                        .number = *number,
                        .source = absl::StrCat(PythonStr(*file), ":", PythonStr(*lineno)),
                        .identity = absl::StrCat(file_key->size(), ":", *file_key,
                                                 lineno_key->size(), ":", *lineno_key, *number)});
  return true;
}

SeedCheck::LogSeeds SeedCheck::ReadSeeds(absl::string_view log_bytes) {
  LogSeeds log;
  bool is_good = true;
  MllogLines lines(log_bytes);
  for (absl::string_view text; lines.Next(&text);) {
    const MllogLine line = ReadMllogLine(text);
    if (line.outcome == MllogOutcome::kNoRecord) continue;
    if (line.outcome != MllogOutcome::kRecord) {
      log.damaged_line = lines.line_number();
      return log;
    }
    std::string storage;
    if (!is_good || MllogKey(line, &storage) != "seed") continue;
    is_good = AddSeed(lines.line_number(), BuildJson(line.value_json),
                      BuildJson(line.metadata_json), &log);
  }
  return log;
}

void SeedCheck::AddLog(const std::string& file, absl::string_view log_bytes) {
  const LogSeeds log = ReadSeeds(log_bytes);
  // The official checker gives up a log at its first damage, and compares none of its seeds.
  if (log.damaged_line > 0) return Add("R-SEED-004", file, log.damaged_line, "a damaged record");
  if (!log.bad_reason.empty()) return Add("R-SEED-003", file, log.bad_line, log.bad_reason);
  if (log.seeds.empty()) return Add("R-SEED-001", file, 0, "none");
  if (log.seeds.size() > 1)
    Add("R-SEED-005", file, log.seeds[1].line, absl::StrCat(log.seeds.size(), " seeds"));
  int shown = 0;
  for (const Seed& seed : log.seeds)
    Compare(file, seed, &shown);
}

std::vector<SeedFinding> SeedCheck::OfSet(bool is_closed, bool is_weak) const {
  std::map<std::string, std::set<std::string>> files;  // by rule
  for (const SeedFinding& seed : findings_)
    files[seed.finding.rule_id].insert(seed.file);
  std::vector<SeedFinding> findings;
  for (const SeedFinding& seed : findings_) {
    // Open throughput sets may not have equal seeds either, but the official checker does not look.
    const bool is_beyond = !is_closed && is_weak && seed.finding.rule_id == "R-SEED-002";
    const auto found = files.find(seed.finding.rule_id);
    if (found == files.end() || (!is_closed && !is_beyond)) continue;
    SeedFinding& first = findings.emplace_back(seed);
    if (is_beyond) first.finding.severity = rules::Severity::kWarning;
    if (found->second.size() > 1)
      absl::StrAppend(&first.finding.found, ", in ", found->second.size(), " logs");
    files.erase(found);
  }
  return findings;
}

void SeedCheck::Compare(const std::string& file, const Seed& seed, int* shown) {
  const auto [known, is_new] = first_file_.try_emplace(seed.identity, file);
  if (is_new) return;
  if (++*shown > kShownPerLog) {
    ++error_count_;
    return;
  }
  Add("R-SEED-002", file, seed.line,
      absl::StrCat("seed ", seed.number.substr(0, 40), " of ", seed.source, ", which ",
                   known->second == file ? std::string("this log") : known->second, " logs too"));
}

void SeedCheck::Add(absl::string_view rule, const std::string& file, int64_t line,
                    absl::string_view found) {
  rules::Finding finding = Violation(rule, found);
  finding.line = line;
  finding.key = "seed";
  error_count_ += finding.severity == rules::Severity::kError;
  findings_.push_back({file, std::move(finding)});
}

}  // namespace assay::package
