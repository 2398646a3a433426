#include "common/client/export.h"

#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "common/client/entry_score.h"
#include "common/client/ids.h"
#include "common/json_document.h"
#include "common/rules/registry.h"
#include "common/status.h"

namespace assay::client {
namespace {

constexpr char kThroughput[] = "throughput";

const char* TrainedBy(const v1::SubmissionSpec& spec) {
  return spec.has_command() ? "external program" : "assay";
}

// The folders in which an imported entry lay, ORG/results/SYSTEM/.../BENCHMARK; empty if it was not
// imported from such a tree, or a folder's name leads elsewhere.
std::vector<std::string> SourceFolders(const v1::Submission& entry) {
  if (!entry.is_imported()) return {};
  std::vector<std::string> folders = absl::StrSplit(entry.source_path(), '/');
  constexpr size_t kFoldersMin = 4;
  if (folders.size() < kFoldersMin || folders[1] != "results") return {};
  for (const std::string& folder : folders)
    if (folder.empty() || folder == "." || folder == "..") return {};
  return folders;
}

// All nodes of the system that the entry used at the same time.
int64_t NodesAtOnce(const v1::SubmissionSpec& spec) {
  return spec.metric() == kThroughput ? int64_t{spec.node_count()} * spec.run_count()
                                      : spec.node_count();
}

// A JSON string is a TOML basic string.
std::string Quoted(const std::string& text) {
  return Json(text).dump();
}

// [workload] of the submission file, as it was; the source lies beside it in the package.
std::string WorkloadToml(const v1::CommandWorkload& command) {
  const auto list = [](const auto& texts) {
    return absl::StrCat("[",
                        absl::StrJoin(texts, ", ",
                                      [](std::string* out, const std::string& one) {
                                        absl::StrAppend(out, Quoted(one));
                                      }),
                        "]\n");
  };
  std::string text = absl::StrCat("\n[workload]\ncommand = ", list(command.command()),
                                  "launcher = ", Quoted(command.launcher()), "\n");
  if (command.has_source()) absl::StrAppend(&text, "source = ", Quoted(kPackagedSource), "\n");
  if (!command.log().empty()) absl::StrAppend(&text, "log = ", Quoted(command.log()), "\n");
  if (command.collect_size() > 0) absl::StrAppend(&text, "collect = ", list(command.collect()));
  if (command.stop_grace_s() > 0)
    absl::StrAppend(&text, "stop_grace_s = ", command.stop_grace_s(), "\n");
  if (command.memory_mib() > 0) absl::StrAppend(&text, "memory_mib = ", command.memory_mib(), "\n");
  if (command.has_image())
    absl::StrAppend(&text, "image = ", Quoted(command.image().path()),
                    "\nimage_sha256 = ", Quoted(command.image().sha256()), "\n");
  if (command.env().empty()) return text;
  std::vector<std::string> variables;
  for (const auto& [name, value] :
       std::map<std::string, std::string>(command.env().begin(), command.env().end()))
    variables.push_back(absl::StrCat(Quoted(name), " = ", Quoted(value)));
  return absl::StrCat(text, "env = { ", absl::StrJoin(variables, ", "), " }\n");
}

std::string ReadmeText(const v1::Submission& entry, const std::vector<v1::Run>& runs) {
  const v1::SubmissionSpec& spec = entry.spec();
  const std::string is_not = NotMlperfText(entry);
  std::string text = absl::StrCat(
      "# ", spec.benchmark(), " on ", spec.system(), "\n\n",
      is_not.empty() ? "" : absl::StrCat("This is ", is_not, ".\n\n"), "| | |\n|---|---|\n",
      "| entry | ", ShortId(entry.name()), " |\n", "| round | ", spec.round(), " |\n",
      "| rules | sha256:", entry.rules_digest(), " |\n", "| division | ", spec.division(), " |\n",
      "| dataset | ", spec.dataset(), " |\n", "| trained by | ", TrainedBy(spec), " |\n");
  if (spec.has_borrowing())
    absl::StrAppend(&text, "| hyperparameters | borrowed from ",
                    ShortId(spec.borrowing().lender_entry()), " in place of those of ",
                    ShortId(spec.borrowing().own_entry()), " |\n");
  if (entry.has_score_minutes())
    absl::StrAppend(&text, "| score | ", entry.score_minutes(), " min (olympic mean) |\n");
  absl::StrAppend(&text, "\n| run | seed | result file | sha256 |\n|---|---|---|---|\n");
  for (const v1::Run& run : runs)
    absl::StrAppend(&text, "| ", ShortId(run.name()), " | ", run.seed(), " | ",
                    ResultFile(run)->file_name(), " | ", ResultFile(run)->sha256(), " |\n");
  absl::StrAppend(&text,
                  "\nTo run it again: `setup.sh`, `init_datasets.sh`, `run_and_time.sh`. The seeds "
                  "of new runs\nare issued by the coordinator and will differ.\n");
  return text;
}

constexpr char kSetupScript[] =
    "#!/usr/bin/env bash\n"
    "# Checks that Assay's programs and a coordinator are at hand.\n"
    "set -euo pipefail\n"
    "assay doctor\n";

std::string DatasetScript(const v1::Submission& entry) {
  return absl::StrCat("#!/usr/bin/env bash\n",
                      "# Checks the dataset at the path given and registers it.\n",
                      "set -euo pipefail\n", "assay dataset verify \"$1\"\n", "assay dataset add ",
                      entry.spec().dataset(), " \"$1\"\n");
}

constexpr char kRunScript[] =
    "#!/usr/bin/env bash\n"
    "# Submits the same entry again and waits for its score.\n"
    "set -euo pipefail\n"
    "assay submit \"$(dirname \"$0\")/submission.toml\" --wait\n";

}  // namespace

const v1::ArtifactRef* ResultFile(const v1::Run& run) {
  for (const v1::ArtifactRef& artifact : run.artifacts())
    if (absl::StartsWith(artifact.file_name(), "result_")) return &artifact;
  return nullptr;
}

std::vector<v1::Run> PackagedRuns(const v1::Submission& entry, const std::vector<v1::Run>& runs) {
  std::vector<v1::Run> packaged;
  // A checker shall find in what was imported what it found before, also what does not count.
  for (const v1::Run& run : entry.is_imported() ? runs : RunsThatCount(entry, runs))
    if (ResultFile(run) != nullptr) packaged.push_back(run);
  return packaged;
}

std::vector<v1::Run> PrunedRuns(const v1::Submission& entry, const std::vector<v1::Run>& runs) {
  std::vector<v1::Run> pruned;
  if (entry.spec().metric() != kThroughput) return pruned;
  std::set<std::string> packaged;
  for (const v1::Run& run : RunsThatCount(entry, runs))
    packaged.insert(run.name());
  for (const v1::Run& run : runs)
    if (!packaged.contains(run.name()) && ResultFile(run) != nullptr) pruned.push_back(run);
  return pruned;
}

std::string OrganizationFolder(const v1::Submission& entry) {
  const std::vector<std::string> folders = SourceFolders(entry);
  return folders.empty() ? PathPart(entry.spec().organization()) : folders[0];
}

std::string SystemFolder(const v1::Submission& entry) {
  const std::vector<std::string> folders = SourceFolders(entry);
  return folders.empty() ? PathPart(entry.spec().system()) : folders[2];
}

std::string ResultsPath(const v1::Submission& entry) {
  const std::vector<std::string> folders = SourceFolders(entry);
  if (!folders.empty()) return absl::StrJoin(folders.begin() + 1, folders.end(), "/");
  const v1::SubmissionSpec& spec = entry.spec();
  std::string scaling = entry.scaling();
  const rules::RuleSet* built_in = rules::FindRuleSet(spec.round());
  if (scaling.empty() && (built_in == nullptr || built_in->data().scaling_folders))
    scaling = "strong";
  return absl::StrCat("results/", PathPart(spec.system()), scaling.empty() ? "" : "/", scaling, "/",
                      PathPart(spec.benchmark()));
}

std::string BenchmarkPath(const v1::Submission& entry) {
  return absl::StrCat("benchmarks/", PathPart(entry.spec().benchmark()), "/", SystemFolder(entry));
}

absl::StatusOr<std::optional<Json>> NodeDescription(const Client& client,
                                                    const std::vector<v1::Run>& runs) {
  for (const v1::Run& run : runs) {
    if (run.workers().empty()) continue;
    v1::GetWorkerRequest request;
    request.set_name(run.workers(0));
    const absl::StatusOr<v1::Worker> worker = client.Call(request);
    if (absl::IsNotFound(worker.status())) continue;
    RETURN_IF_ERROR(worker.status());
    Json json = ParseJsonDocument<Json>(worker->system_description_json());
    if (json.is_object()) return json;
  }
  return std::nullopt;
}

std::vector<PackageFile> DescribingFiles(const v1::Submission& entry,
                                         const std::vector<v1::Run>& runs,
                                         const Json& node_description) {
  const v1::SubmissionSpec& spec = entry.spec();
  const std::string system = SystemFolder(entry);
  const std::string benchmark = BenchmarkPath(entry);
  if (entry.is_imported()) {
    if (entry.system_description_json().empty()) return {};
    return {{absl::StrCat("systems/", system, ".json"), entry.system_description_json()}};
  }
  const Json implementation = {{"implementation", TrainedBy(spec)},
                               {"version", ASSAY_VERSION},
                               {"entry", ShortId(entry.name())},
                               {"round", spec.round()},
                               {"rules_digest", entry.rules_digest()}};
  return {{absl::StrCat("systems/", system, ".json"),
           SystemJson(entry, node_description).dump(4) + "\n"},
          {absl::StrCat(benchmark, "/README.md"), ReadmeText(entry, runs)},
          {absl::StrCat(benchmark, "/submission.toml"), SubmissionToml(entry)},
          {absl::StrCat(benchmark, "/setup.sh"), kSetupScript, true},
          {absl::StrCat(benchmark, "/init_datasets.sh"), DatasetScript(entry), true},
          {absl::StrCat(benchmark, "/run_and_time.sh"), kRunScript, true},
          {absl::StrCat(benchmark, "/", system, "_assay.json"), implementation.dump(4) + "\n"}};
}

Json SystemJson(const v1::Submission& entry, const Json& node_description) {
  Json json = Json::object();
  for (const char* member : package::RequiredSystemMembers()) {
    const auto found = node_description.find(member);
    json[member] = found == node_description.end() ? Json("") : *found;
  }
  const v1::SubmissionSpec& spec = entry.spec();
  json["submitter"] = spec.organization();
  json["division"] = spec.division();
  json["status"] = spec.status();
  json["system_name"] = spec.system();
  json["number_of_nodes"] = absl::StrCat(NodesAtOnce(spec));
  if (spec.has_command()) json["framework"] = TrainedBy(spec);  // of the node's it used none
  for (const auto& [member, value] : node_description.items())
    if (!json.contains(member)) json[member] = value;
  return json;
}

std::string SubmissionToml(const v1::Submission& entry) {
  const v1::SubmissionSpec& spec = entry.spec();
  std::string text = absl::StrCat(
      "# Made from ", ShortId(entry.name()), ".\n", "round = ", Quoted(spec.round()),
      "\nbenchmark = ", Quoted(spec.benchmark()), "\ndivision = ", Quoted(spec.division()),
      "\norganization = ", Quoted(spec.organization()), "\nsystem = ", Quoted(spec.system()),
      "\ndataset = ", Quoted(spec.dataset()), "\nnodes = ", spec.node_count(), "\n");
  const bool is_throughput = spec.metric() == kThroughput;
  if (is_throughput) absl::StrAppend(&text, "metric = ", Quoted(spec.metric()), "\n");
  const std::pair<const char*, int32_t> numbers[] = {
      {"ranks_per_node", spec.ranks_per_node()},
      {is_throughput ? "instances" : "runs", spec.run_count()},
      {"epochs_max", spec.epoch_count_max()},
      {"replacements", spec.replacement_count_max()},
      {"minutes_per_run", spec.minutes_per_run()}};
  for (const auto& [key, value] : numbers)
    if (value > 0) absl::StrAppend(&text, key, " = ", value, "\n");
  const std::string& backend = spec.trainer().backend();
  if (!backend.empty()) absl::StrAppend(&text, "backend = ", Quoted(backend), "\n");
  if (!spec.status().empty()) absl::StrAppend(&text, "status = ", Quoted(spec.status()), "\n");
  if (!spec.staging().empty()) absl::StrAppend(&text, "staging = ", Quoted(spec.staging()), "\n");
  if (!spec.fleet().empty()) absl::StrAppend(&text, "fleet = ", Quoted(spec.fleet()), "\n");
  if (spec.allow_preemptible()) absl::StrAppend(&text, "allow_preemptible = true\n");
  if (spec.has_command()) absl::StrAppend(&text, WorkloadToml(spec.command()));
  if (spec.hyperparameters_size() > 0) absl::StrAppend(&text, "\n[hyperparameters]\n");
  // JSON numbers, texts, booleans and lists of these are TOML too.
  for (const v1::Hyperparameter& parameter : spec.hyperparameters())
    absl::StrAppend(&text, parameter.key(), " = ", parameter.json_value(), "\n");
  if (!spec.worker_labels().empty()) absl::StrAppend(&text, "\n[labels]\n");
  const std::map<std::string, std::string> labels(spec.worker_labels().begin(),
                                                  spec.worker_labels().end());
  for (const auto& [key, value] : labels)
    absl::StrAppend(&text, Quoted(key), " = ", Quoted(value), "\n");
  return text;
}

}  // namespace assay::client
