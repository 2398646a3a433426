#include "cli/rules/rules_pack.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "cli/command/context.h"
#include "cli/rules/rule_sets.h"
#include "common/ed25519.h"
#include "common/file.h"
#include "common/rules/pack.h"
#include "common/rules/pack_names.h"
#include "common/rules/registry.h"
#include "common/status.h"

namespace assay::cli {
namespace {

absl::StatusOr<std::string> ReadPublicKey(const Environment& environment,
                                          const std::string& public_key) {
  const std::string path =
      public_key.empty() ? environment.Variable("ASSAY_RULES_KEY") : public_key;
  if (path.empty()) {
    return absl::InvalidArgumentError(
        "a frozen pack is used only with the key that verifies it: give --public-key FILE or set "
        "ASSAY_RULES_KEY");
  }
  return ReadFile(environment.AbsolutePath(path));
}

// ------------------------------------------------------------------------------- freeze, verify

absl::StatusOr<ExitStatus> RunFreeze(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const RuleSetRef rule_set, LoadRuleSet(context->env(), arguments.Get("ROUND"),
                                                          arguments.Get("public-key")));
  ASSIGN_OR_RETURN(const std::string key,
                   ReadFile(context->env().AbsolutePath(arguments.Get("key"))));
  const absl::StatusOr<std::string> signature =
      Ed25519Sign(key, rules::PackMessage(rule_set->data()));
  if (!signature.ok()) return Annotate(signature.status(), arguments.Get("key"));
  const std::string file = arguments.Get("out");
  RETURN_IF_ERROR(WriteFileAtomic(context->env().AbsolutePath(file),
                                  rules::WritePack(rule_set->data(), *signature)));
  RETURN_IF_ERROR(context->printer().Show(
      {.schema = "assay.rule_pack_file/v1",
       .value = {{"file", file}, {"round", rule_set->name()}, {"digest", rule_set->digest()}},
       .fields = {{"file", "file"}, {"round", "round"}, {"digest", "digest"}}}));
  context->Note(absl::StrCat("verify it with 'assay rules verify ", file,
                             " --public-key FILE'; 'openssl pkey -in ", arguments.Get("key"),
                             " -pubout' prints that key"));
  return ExitStatus::kDone;
}

absl::StatusOr<ExitStatus> RunPackVerify(Context* context, const Arguments& arguments) {
  const std::string file = arguments.Get("FILE");
  ASSIGN_OR_RETURN(const VerifiedPack pack,
                   LoadPack(context->env(), file, arguments.Get("public-key")));
  const rules::RuleSet* built_in = rules::FindRuleSet(pack.data.name);
  std::string program = "this program has no round of that name";
  if (built_in != nullptr)
    program = built_in->IsKnownAs(pack.digest) ? "the same rules" : "different rules";
  RETURN_IF_ERROR(context->printer().Show({.schema = "assay.rule_pack_file/v1",
                                           .value = {{"file", file},
                                                     {"round", pack.data.name},
                                                     {"digest", pack.digest},
                                                     {"signature", "good"},
                                                     {"program", program}},
                                           .fields = {{"file", "file"},
                                                      {"round", "round"},
                                                      {"digest", "digest"},
                                                      {"signature", "signature"},
                                                      {"built in", "program"}}}));
  return ExitStatus::kDone;
}

// ------------------------------------------------------------------------------------ difference

// What a round demands, by what it is about.
struct Demand {
  std::string rule;   // its id; empty for what is no rule
  std::string words;  //
  std::string exact;  // tells demands apart whose words are the same
};
using Demands = std::map<std::pair<std::string, std::string>, Demand>;  // by config and key

// What of a benchmark is no rule of a log: "cosmoflow (reference)".
void AddReference(const rules::Benchmark& benchmark, Demands* demands) {
  const auto put = [&](absl::string_view what, const std::string& key, const std::string& words,
                       const std::string& exact) {
    (*demands)[{absl::StrCat(benchmark.name, " (", what, ")"), key}] = {"", words, exact};
  };
  for (const auto& [key, value] : benchmark.fixed)
    put("fixed", key, DumpJson(value), DumpJson(value));
  for (const auto& [key, value] : benchmark.reference_values)
    put("reference", key, DumpJson(value), DumpJson(value));
  for (const rules::ReferenceRecord& record : benchmark.reference_points)
    put("reference", absl::StrCat("convergence at batch size ", record.batch_size),
        absl::StrCat(record.epochs.size(), " runs, ",
                     *std::min_element(record.epochs.begin(), record.epochs.end()), " to ",
                     *std::max_element(record.epochs.begin(), record.epochs.end()), " ",
                     rules::NameOf(benchmark.reference_unit)),
        absl::StrJoin(record.epochs, ","));
}

Demands DemandsOf(const rules::RuleSetData& data) {
  Demands demands;
  const auto put = [&](const std::string& key, const std::string& words) {
    demands[{"round", key}] = {"", words, words};
  };
  put("init_limit_ms", absl::StrCat(data.init_limit_ms));
  put("first_pass_from_storage", data.first_pass_from_storage ? "yes" : "no");
  put("data_cold_at_start", data.data_cold_at_start ? "yes" : "no");
  put("first_touch_assurance", std::string(rules::NameOf(data.first_touch_assurance)));
  put("staging_on_the_clock", data.staging_on_the_clock ? "yes" : "no");
  put("failed_runs_allowed", absl::StrCat(data.scoring.failed_runs_allowed));
  put("counts", std::string(rules::NameOf(data.scoring.counts)));
  put("scaling_folders", data.scaling_folders ? "yes" : "no");
  for (const rules::Benchmark& benchmark : data.benchmarks) {
    put(benchmark.name,
        absl::StrCat(benchmark.runs_required, " runs, ", benchmark.quality_key,
                     benchmark.lower_is_better ? " <= " : " >= ", Json(benchmark.target).dump()));
    AddReference(benchmark, &demands);
    for (const rules::KeyRule& rule : benchmark.document_rules)
      demands[{absl::StrCat(benchmark.name, " (document)"), rule.key}] = {
          rule.id, rules::Demand(rule), rules::CanonicalText(rule)};
  }
  for (const rules::Config& config : data.configs)
    for (const rules::KeyRule& rule : config.rules)
      demands[{config.name, rule.key}] = {rule.id, rules::Demand(rule), rules::CanonicalText(rule)};
  return demands;
}

Json ChangeJson(const Demands::key_type& place, const Demand* a, const Demand* b) {
  const Demand& known = b == nullptr ? *a : *b;
  Json json = {{"change", a == nullptr ? "added" : b == nullptr ? "removed" : "changed"}};
  if (!known.rule.empty()) json["rule"] = known.rule;
  json["config"] = place.first;
  json["key"] = place.second;
  if (a != nullptr) json["before"] = a->words;
  if (b != nullptr) json["after"] = b->words;
  return json;
}

Json Changes(const Demands& a, const Demands& b) {
  Json changes = Json::array();
  for (const auto& [place, before] : a) {
    const auto after = b.find(place);
    if (after == b.end()) {
      changes.push_back(ChangeJson(place, &before, nullptr));
    } else if (before.exact != after->second.exact) {
      changes.push_back(ChangeJson(place, &before, &after->second));
    }
  }
  for (const auto& [place, after] : b)
    if (a.find(place) == a.end()) changes.push_back(ChangeJson(place, nullptr, &after));
  return changes;
}

absl::StatusOr<ExitStatus> RunDiff(Context* context, const Arguments& arguments) {
  const std::string key = arguments.Get("public-key");
  ASSIGN_OR_RETURN(const RuleSetRef a, LoadRuleSet(context->env(), arguments.Get("A"), key));
  ASSIGN_OR_RETURN(const RuleSetRef b, LoadRuleSet(context->env(), arguments.Get("B"), key));
  const ListView view{.schema = "assay.rule_change/v1",
                      .items = Changes(DemandsOf(a->data()), DemandsOf(b->data())),
                      .columns = {{"CHANGE", "change"},
                                  {"RULE", "rule"},
                                  {"IN", "config", Format::kText, 1},
                                  {"KEY", "key"},
                                  {"BEFORE", "before"},
                                  {"AFTER", "after"}},
                      .empty_text = absl::StrCat(a->name(), " and ", b->name(), " judge alike")};
  RETURN_IF_ERROR(context->printer().List(view));
  return view.items.empty() ? ExitStatus::kDone : ExitStatus::kDifferent;
}

}  // namespace

absl::StatusOr<VerifiedPack> LoadPack(const Environment& environment, const std::string& path,
                                      const std::string& public_key) {
  ASSIGN_OR_RETURN(const std::string key, ReadPublicKey(environment, public_key));
  ASSIGN_OR_RETURN(const std::string text, ReadFile(environment.AbsolutePath(path)));
  ASSIGN_OR_RETURN(rules::Pack pack, rules::ReadPack(text, path));
  RETURN_IF_ERROR(Annotate(Ed25519Verify(key, pack.message, pack.signature), path));
  return VerifiedPack{std::move(pack.data), std::move(pack.digest)};
}

std::vector<Command> RulesPackCommands() {
  using Kind = Option::Kind;
  const Positional a = {.name = "A",
                        .help = "a round: hpc-2.0.0, v1.0, a .toml or a pack's file",
                        .completes = Completes::kRound};
  const Positional b = {.name = "B", .help = "the other", .completes = Completes::kRound};
  return {{.path = "rules diff",
           .summary = "what changes from one round to another",
           .description = "Exits with 10 if something does.",
           .positionals = {a, b},
           .options = {PublicKeyOption()},
           .examples = {{"assay rules diff v2.0 v3.0", ""}},
           .run = RunDiff},
          {.path = "rules freeze",
           .summary = "write a round's rules as a signed file",
           .description =
               "The file holds every rule as data, its digest, and an Ed25519 signature. 'openssl "
               "genpkey -algorithm ed25519 -out key.pem' makes a key.",
           .positionals = {{.name = "ROUND",
                            .help = "hpc-3.0.0, v1.0, or a .toml file",
                            .completes = Completes::kRound}},
           .options = {{.name = "key",
                        .kind = Kind::kText,
                        .value = "FILE",
                        .help = "Ed25519 private key in PEM",
                        .is_required = true},
                       {.name = "out",
                        .letter = 'o',
                        .kind = Kind::kText,
                        .value = "FILE",
                        .help = "the pack",
                        .is_required = true},
                       PublicKeyOption()},
           .examples = {{"assay rules freeze v3.0 --key key.pem -o hpc-3.0.0.json", ""}},
           .run = RunFreeze},
          {.path = "rules verify",
           .summary = "check digest and signature of a frozen round",
           .positionals = {{.name = "FILE", .help = "the pack", .completes = Completes::kFile}},
           .options = {PublicKeyOption()},
           .examples = {{"assay rules verify hpc-3.0.0.json --public-key public.pem", ""}},
           .run = RunPackVerify}};
}

}  // namespace assay::cli
