#include "common/telemetry/foreign.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "common/json_reader.h"
#include "common/json_value.h"
#include "common/printable.h"

namespace assay::telemetry {
namespace {

std::optional<int64_t> IntegerOf(const JsonValue& object, absl::string_view name) {
  const JsonValue* const member = object.Find(name);
  return member == nullptr ? std::nullopt : member->AsInt64();
}

std::optional<ForeignProcess> ReadProcess(const JsonValue& value) {
  const std::optional<int64_t> pid = IntegerOf(value, "pid");
  const std::optional<int64_t> cpu_ms = IntegerOf(value, "cpu_ms");
  const JsonValue* const name = value.Find("name");
  if (!pid || !cpu_ms || *cpu_ms < 0 || name == nullptr || name->AsString() == nullptr)
    return std::nullopt;
  return ForeignProcess{*pid, Printable(*name->AsString()), *cpu_ms};
}

std::optional<ForeignSpan> ReadSpan(absl::string_view line) {
  const JsonResult parsed = ParseJson(line);
  if (parsed.error != JsonError::kNone) return std::nullopt;
  const std::optional<int64_t> begin_ns = IntegerOf(parsed.value, "begin_ns");
  const std::optional<int64_t> end_ns = IntegerOf(parsed.value, "end_ns");
  const JsonValue* const largest = parsed.value.Find("largest");
  if (!begin_ns || !end_ns || *begin_ns < 0 || *end_ns <= *begin_ns || largest == nullptr ||
      largest->AsList() == nullptr)
    return std::nullopt;
  ForeignSpan span{*begin_ns, *end_ns, {}};
  for (const JsonValue& value : *largest->AsList()) {
    if (span.largest.size() == kForeignCountMax) break;
    if (std::optional<ForeignProcess> process = ReadProcess(value); process.has_value())
      span.largest.push_back(*std::move(process));
  }
  return span;
}

}  // namespace

std::string ForeignLine(const ForeignSpan& span) {
  JsonList largest;
  for (const ForeignProcess& process : span.largest)
    largest.emplace_back(JsonObject{
        {"pid", process.pid}, {"name", Printable(process.name)}, {"cpu_ms", process.cpu_ms}});
  return absl::StrCat(DumpJson(JsonValue(JsonObject{{"begin_ns", span.begin_ns},
                                                    {"end_ns", span.end_ns},
                                                    {"largest", JsonValue(std::move(largest))}})),
                      "\n");
}

std::vector<ForeignSpan> ReadForeign(absl::string_view text) {
  std::vector<ForeignSpan> spans;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty()))
    if (std::optional<ForeignSpan> span = ReadSpan(line); span.has_value())
      spans.push_back(*std::move(span));
  return spans;
}

std::vector<ForeignUse> LargestForeign(const std::vector<ForeignSpan>& spans, int64_t begin_ns,
                                       int64_t end_ns) {
  std::map<std::pair<int64_t, std::string>, double> used_ns;
  double known_ns = 0;
  for (const ForeignSpan& span : spans) {
    const auto inside_ns = static_cast<double>(std::min(end_ns, span.end_ns)) -
                           static_cast<double>(std::max(begin_ns, span.begin_ns));
    if (inside_ns <= 0) continue;
    known_ns += inside_ns;
    const double part = inside_ns / static_cast<double>(span.end_ns - span.begin_ns);
    for (const ForeignProcess& process : span.largest)
      used_ns[{process.pid, process.name}] += static_cast<double>(process.cpu_ms) * 1e6 * part;
  }
  std::vector<ForeignUse> uses;
  uses.reserve(used_ns.size());
  for (const auto& [who, ns] : used_ns)
    uses.push_back({who.first, who.second, ns / known_ns});
  std::stable_sort(uses.begin(), uses.end(),
                   [](const ForeignUse& a, const ForeignUse& b) { return a.share > b.share; });
  if (uses.size() > kForeignCountMax) uses.resize(kForeignCountMax);
  return uses;
}

}  // namespace assay::telemetry
