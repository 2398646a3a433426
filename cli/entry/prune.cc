#include "cli/entry/prune.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "cli/entry/entry.h"
#include "common/client/client.h"
#include "common/client/entry_score.h"
#include "common/client/ids.h"
#include "common/client/pages.h"
#include "common/client/resource_json.h"
#include "common/status.h"

namespace assay::cli {
namespace {

struct RunSet {
  v1::Submission entry;
  std::vector<v1::Run> runs;
};

absl::StatusOr<RunSet> ReadSet(const client::Client& client, const std::string& id) {
  RunSet set;
  ASSIGN_OR_RETURN(set.entry, client::GetEntry(client, id));
  ASSIGN_OR_RETURN(set.runs, client::AllRunsOf(client, set.entry.name()));
  return set;
}

absl::Status CheckChoice(const v1::Submission& entry) {
  const std::string id = client::ShortId(entry.name());
  if (entry.scaling() != "weak" || entry.is_imported())
    return absl::FailedPreconditionError(
        absl::StrCat(id, " is no throughput set of this coordinator: nothing is left out"));
  if (entry.state() != v1::Submission::VALID)
    return absl::FailedPreconditionError(
        absl::StrCat(id, " is ", client::StateText(entry.state()),
                     ": only of a valid set good instances are left out"));
  if (entry.pruned_runs_size() > 0)
    return absl::FailedPreconditionError(
        absl::StrCat(id, " has ", entry.pruned_runs_size(),
                     " instances left out already, and that is chosen once: assay score ", id));
  return absl::OkStatus();
}

std::vector<std::string> LeftOut(const rules::Pruning& pruning, const std::vector<v1::Run>& runs) {
  std::vector<std::string> names;
  for (const size_t i : pruning.left_out)
    names.push_back(runs[i].name());
  return names;
}

// The instances without which `keep` remain and take the least time.
absl::StatusOr<std::vector<std::string>> BestWithout(const RunSet& set, int64_t keep) {
  const std::vector<rules::Pruning> prunings = client::PruningsOf(set.entry, set.runs);
  const auto it = std::find_if(prunings.begin(), prunings.end(), [keep](const auto& pruning) {
    return pruning.model_count == keep && !pruning.left_out.empty();
  });
  if (it != prunings.end()) return LeftOut(*it, set.runs);
  if (prunings.size() < 2)
    return absl::FailedPreconditionError(
        absl::StrCat("the round asks for ", set.entry.required_run_count(),
                     " models, and no more count: none can be left out"));
  return absl::InvalidArgumentError(
      absl::StrCat("--keep: expected ", prunings.back().model_count, " to ",
                   prunings.front().model_count - 1, ", found ", keep, "; 'assay score ",
                   client::ShortId(set.entry.name()), " --prune' shows what each would give"));
}

absl::StatusOr<ExitStatus> RunPrune(Context* context, const Arguments& arguments) {
  std::vector<std::string> names = arguments.All("RUN");
  if (names.empty() != arguments.Has("keep"))
    return absl::InvalidArgumentError(
        "say which runs are left out, or by --keep N how many models remain: one of the two");
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  v1::PruneInstancesRequest request;
  ASSIGN_OR_RETURN(*request.mutable_name(), client::EntryName(*client, arguments.Get("ID")));
  if (arguments.Has("keep")) {
    ASSIGN_OR_RETURN(const int64_t keep, arguments.Integer("keep", 0));
    ASSIGN_OR_RETURN(const RunSet set, ReadSet(*client, arguments.Get("ID")));
    RETURN_IF_ERROR(CheckChoice(set.entry));
    ASSIGN_OR_RETURN(names, BestWithout(set, keep));
  }
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(*request.add_runs(), client::RunName(*client, name));
  }
  ASSIGN_OR_RETURN(const v1::Submission entry, client->CallRetrying(request));
  const std::string id = client::ShortId(entry.name());
  RETURN_IF_ERROR(ShowChanged(
      context, entry,
      absl::StrFormat("%s leaves %d instances out: %d models in %.4f min, %.4f models/min", id,
                      entry.pruned_runs_size(), entry.throughput().model_count(),
                      entry.throughput().time_to_all_minutes(),
                      entry.throughput().models_per_minute()),
      "their logs stay visible and are exported to pruned_results"));
  return ExitStatus::kDone;
}

}  // namespace

absl::Status PrintPrunings(Context* context, const v1::Submission& entry,
                           const std::vector<v1::Run>& runs) {
  RETURN_IF_ERROR(CheckChoice(entry));
  ListView view{.schema = "assay.pruning/v1",
                .columns = {{"MODELS", "model_count", Format::kNumber},
                            {"MIN TO ALL", "time_to_all_minutes", Format::kNumber},
                            {"MODELS/MIN", "models_per_minute", Format::kNumber},
                            {"BEST", "best"},
                            {"LEFT OUT", "left_out"}},
                .empty_text = "none can be left out"};
  const std::vector<rules::Pruning> prunings = client::PruningsOf(entry, runs);
  double best = 0;
  for (const rules::Pruning& pruning : prunings)
    best = std::max(best, pruning.models_per_minute());
  for (const rules::Pruning& pruning : prunings) {
    Json ids = Json::array();
    for (const std::string& name : LeftOut(pruning, runs))
      ids.push_back(client::ShortId(name));
    view.items.push_back({{"model_count", pruning.model_count},
                          {"time_to_all_minutes", pruning.time_to_all_minutes},
                          {"models_per_minute", pruning.models_per_minute()},
                          {"best", pruning.models_per_minute() == best},
                          {"left_out", std::move(ids)}});
  }
  RETURN_IF_ERROR(context->printer().List(view));
  context->Note(
      absl::StrCat("chosen once: assay prune ", client::ShortId(entry.name()), " --keep MODELS"));
  return absl::OkStatus();
}

std::vector<Command> PruneCommands() {
  return {{.path = "prune",
           .summary = "leave good instances out of a throughput set, once",
           .description =
               "A throughput is models per minute from the first start to the last stop, so a slow "
               "instance may cost more than it brings. The rules let the submitter leave some out "
               "as long as the round's number remains. That is chosen once and stays on record; "
               "'assay score ID --prune' shows beforehand what each choice gives. What is left out "
               "stays visible and is exported to pruned_results.",
           .positionals = {{.name = "ID",
                            .help = "e-42, s-42 or @last",
                            .completes = Completes::kEntry},
                           {.name = "RUN",
                            .help = "runs to leave out",
                            .is_required = false,
                            .is_repeated = true}},
           .options = {{.name = "keep",
                        .kind = Option::Kind::kInteger,
                        .value = "N",
                        .help = "keep the N models that take the least time together"}},
           .examples = {{"assay score e-42 --prune", "what can be chosen"},
                        {"assay prune e-42 --keep 18", ""},
                        {"assay prune e-42 r-907 r-911", ""}},
           .run = RunPrune}};
}

}  // namespace assay::cli
