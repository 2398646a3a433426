#include "cli/rules/rule_sets.h"

#include <optional>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "cli/command/context.h"
#include "cli/command/share.h"
#include "cli/rules/rules_pack.h"
#include "common/client/resource_json.h"
#include "common/client/rule_json.h"
#include "common/client/suggest.h"
#include "common/file.h"
#include "common/rules/facility_round.h"
#include "common/rules/registry.h"
#include "common/status.h"
#include "common/toml.h"

namespace assay::cli {
namespace {

// Rounds that the coordinator has besides the built-in ones; none if no coordinator answers.
void AddCoordinatorRounds(Context* context, Json* items) {
  const absl::StatusOr<client::Client*> client = context->Connect();
  if (!client.ok()) return;
  const absl::StatusOr<v1::ListRoundsResponse> response =
      (*client)->Call(v1::ListRoundsRequest(), absl::Seconds(5));
  if (!response.ok()) return;
  std::set<std::string> known;
  for (const Json& item : *items)
    known.insert(item["id"].get<std::string>());
  for (const v1::Round& round : response->rounds())
    if (known.insert(round.name()).second) items->push_back(client::RoundJson(round));
}

absl::StatusOr<ExitStatus> RunRulesList(Context* context, const Arguments& arguments) {
  ListView view{.schema = "assay.round/v1",
                .columns = {{"ROUND", "id"},
                            {"MLPERF", "is_mlperf_result", Format::kYesNo, 1},
                            {"BENCHMARKS", "benchmarks"},
                            {"DIGEST", "digest", Format::kDigest},
                            {"LABEL", "label", Format::kText, 2}}};
  for (const rules::RuleSet* rule_set : rules::BuiltInRuleSets())
    view.items.push_back(client::RuleSetJson(*rule_set));
  if (!arguments.Has("built-in")) AddCoordinatorRounds(context, &view.items);
  RETURN_IF_ERROR(context->printer().List(view));
  return ExitStatus::kDone;
}

absl::StatusOr<ExitStatus> RunRulesShow(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const RuleSetRef rule_set, LoadRuleSet(context->env(), arguments.Get("ROUND"),
                                                          arguments.Get("public-key")));
  ShowView view{.schema = "assay.round/v1",
                .value = client::RoundDetailsJson(*rule_set),
                .fields = {{"round", "id"},
                           {"label", "label"},
                           {"MLPerf result", "is_mlperf_result", Format::kYesNo},
                           {"digest", "digest"},
                           {"init limit ms", "init_limit_ms"},
                           {"staging timed", "is_staging_timed", Format::kYesNo},
                           {"runs that count", "counts"},
                           {"failed runs allowed", "failed_runs_allowed", Format::kNumber},
                           {"judged officially as", "official_round"},
                           {"analysed in", "paper"}},
                .sections = {{"Benchmarks",
                              "benchmark_details",
                              {{"BENCHMARK", "id"},
                               {"RUNS", "runs", Format::kNumber},
                               {"KEY", "quality_key"},
                               {"TARGET", "target", Format::kNumber},
                               {"BETTER", "better"},
                               {"FIXED", "fixed"},
                               {"REFERENCE BATCH SIZES", "reference_batch_sizes"}}},
                             {"Rules",
                              "rules",
                              {{"RULE", "id"},
                               {"KEY", "key"},
                               {"IN", "config", Format::kText, 1},
                               {"WANTS", "expected"}}}}};
  RETURN_IF_ERROR(context->printer().Show(view));
  return ExitStatus::kDone;
}

absl::StatusOr<ExitStatus> RunRulesExplain(Context* context, const Arguments& arguments) {
  const std::string id = absl::AsciiStrToUpper(arguments.Get("RULE"));
  const Json json = client::FindRuleJson(id);
  if (json.is_null()) {
    return absl::NotFoundError(absl::StrCat("there is no rule '", id, "' in a built-in round",
                                            client::DidYouMean(id, client::AllRuleIds()),
                                            "; 'assay rules show ROUND' lists them"));
  }
  RETURN_IF_ERROR(context->printer().Show(
      {.schema = "assay.rule/v1",
       .value = json,
       .fields = {{"rule", "id"},
                  {"severity", "severity"},
                  {"key", "key"},
                  {"wants", "expected"},
                  {"stands in", "section"},
                  {"remedy", "remedy"}},
       .sections = {
           {"Rounds", "rounds", {{"ROUND", "round"}, {"IN", "config"}, {"WANTS", "expected"}}}}}));
  return ExitStatus::kDone;
}

absl::StatusOr<RuleSetRef> FacilityRound(const std::string& path, absl::string_view shown) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kTomlBytesMax));
  ASSIGN_OR_RETURN(std::unique_ptr<const rules::RuleSet> rule_set,
                   rules::ParseFacilityRound(text, shown));
  return RuleSetRef(std::move(rule_set));
}

absl::StatusOr<RuleSetRef> FrozenRound(const Environment& environment, const std::string& path,
                                       const std::string& public_key) {
  ASSIGN_OR_RETURN(VerifiedPack pack, LoadPack(environment, path, public_key));
  return RuleSetRef(std::make_shared<const rules::RuleSet>(std::move(pack.data)));
}

// The file of a facility's round that comes with the programs, by its name.
std::optional<std::string> ShippedRound(const Environment& environment, absl::string_view name) {
  const absl::StatusOr<std::string> rounds = ShareDirectory(environment, "rounds");
  if (!rounds.ok() || absl::StrContains(name, "/")) return std::nullopt;
  const std::string path = JoinPath(*rounds, absl::StrCat(name, ".toml"));
  return FileExists(path) ? std::optional<std::string>(path) : std::nullopt;
}

}  // namespace

std::string CanonicalRound(const std::string& name) {
  const rules::RuleSet* built_in = rules::FindRuleSet(name);
  return built_in == nullptr ? name : built_in->name();
}

Option PublicKeyOption() {
  return {.name = "public-key",
          .kind = Option::Kind::kText,
          .value = "FILE",
          .help = "verify a pack with this Ed25519 key (PEM); default: ASSAY_RULES_KEY"};
}

absl::StatusOr<RuleSetRef> LoadRuleSet(const Environment& environment, absl::string_view name,
                                       const std::string& public_key) {
  if (const rules::RuleSet* built_in = rules::FindRuleSet(name); built_in != nullptr)
    return RuleSetRef(built_in, [](const rules::RuleSet*) {});
  if (absl::EndsWith(name, ".toml")) return FacilityRound(environment.AbsolutePath(name), name);
  if (absl::EndsWith(name, ".json")) return FrozenRound(environment, std::string(name), public_key);
  if (const auto shipped = ShippedRound(environment, name); shipped.has_value())
    return FacilityRound(*shipped, *shipped);
  std::vector<std::string> known;
  for (const rules::RuleSet* rule_set : rules::BuiltInRuleSets())
    known.push_back(rule_set->name());
  return absl::NotFoundError(
      absl::StrCat("there is no built-in round '", name, "'", client::DidYouMean(name, known),
                   "; they are ", absl::StrJoin(known, ", "),
                   ", or name a facility round's .toml file or a frozen pack's .json file"));
}

std::vector<Command> RulesCommands() {
  return {{.path = "rules list",
           .summary = "list rounds with the digests of their rules",
           .options = {{.name = "built-in", .help = "without those of the coordinator"}},
           .examples = {{"assay rules list", ""}},
           .run = RunRulesList},
          {.path = "rules show",
           .summary = "show a round: targets, runs, every rule",
           .positionals = {{.name = "ROUND",
                            .help = "hpc-3.0.0, v1.0, a .toml or a pack's file",
                            .completes = Completes::kRound}},
           .options = {PublicKeyOption()},
           .examples = {{"assay rules show hpc-3.0.0", ""}},
           .run = RunRulesShow},
          {.path = "rules explain",
           .summary = "what a rule wants, where it stands, what to do",
           .positionals = {{.name = "RULE", .help = "as R-HP-004"}},
           .examples = {{"assay rules explain R-HP-004", ""}},
           .run = RunRulesExplain}};
}

}  // namespace assay::cli
