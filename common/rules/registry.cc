#include "common/rules/registry.h"

#include <algorithm>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "common/log.h"
#include "common/rules/embedded_files.h"
#include "common/rules/pack.h"

namespace assay::rules {
namespace {

using RoundTable = std::vector<std::unique_ptr<const RuleSet>>;

std::string NameOf(const EmbeddedFile& file) {
  return std::string(absl::StripSuffix(file.name, ".json"));
}

RoundTable ReadRounds() {
  RoundTable rounds;
  for (const EmbeddedFile& file : EmbeddedRounds()) {
    absl::StatusOr<Pack> pack = ReadPack(file.text, file.name);
    CHECK(pack.ok()) << pack.status();
    CHECK(pack->data.name == NameOf(file)) << file.name;
    rounds.push_back(std::make_unique<const RuleSet>(std::move(pack->data)));
  }
  return rounds;
}

const RoundTable& Rounds() {
  static const RoundTable* const rounds = new RoundTable(ReadRounds());
  return *rounds;
}

// Of a round of HPC the family need not be said: it was first.
absl::string_view WithoutFamily(absl::string_view name) {
  absl::ConsumePrefix(&name, "hpc");
  if (!absl::ConsumePrefix(&name, "-")) absl::ConsumePrefix(&name, " ");
  absl::ConsumePrefix(&name, "v");
  return name;
}

}  // namespace

const RuleSet* FindRuleSet(absl::string_view name) {
  const absl::string_view version = WithoutFamily(name);
  for (const auto& rules : Rounds()) {
    const absl::string_view own = WithoutFamily(rules->name());
    if (version == own || absl::StrCat(version, ".0") == own) return rules.get();
  }
  return nullptr;
}

std::vector<const RuleSet*> BuiltInRuleSets() {
  std::vector<const RuleSet*> all;
  for (const auto& rules : Rounds())
    all.push_back(rules.get());
  return all;
}

std::vector<std::string> BuiltInRoundNames() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : EmbeddedRounds())
    names.push_back(NameOf(file));
  return names;
}

bool IsMlperfBenchmark(absl::string_view name) {
  return std::any_of(Rounds().begin(), Rounds().end(),
                     [&](const auto& rules) { return rules->FindBenchmark(name) != nullptr; });
}

}  // namespace assay::rules
