#include "cli/entry/submission_keys.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "cli/entry/workload_table.h"
#include "common/rules/benchmark_settings.h"

namespace assay::cli {
namespace {

constexpr int64_t kNodeCountMax = 4096;
constexpr int64_t kCountMax = 1'000'000;

using Spec = v1::SubmissionSpec;

std::string KeyLine(const char* name, const char* example, const std::string& help) {
  return absl::StrFormat("  %-18s %s\n  %-18s   as %s\n", name, help, "", example);
}

}  // namespace

const std::vector<SubmissionKey>& SubmissionKeys() {
  static const auto* const kKeys = new std::vector<SubmissionKey>{
      {.name = "round",
       .example = "\"hpc-3.0.0\"",
       .help = "the rule set that judges it: 'assay rules list'",
       .is_required = true,
       .set_text = [](Spec* s, const std::string& v) { s->set_round(v); }},
      {.name = "benchmark",
       .example = "\"cosmoflow\"",
       .help = "one of the round's",
       .is_required = true,
       .set_text = [](Spec* s, const std::string& v) { s->set_benchmark(v); }},
      {.name = "division",
       .example = "\"closed\"",
       .help = "closed, where machines are compared, or open",
       .is_required = true,
       .set_text = [](Spec* s, const std::string& v) { s->set_division(v); }},
      {.name = "organization",
       .example = "\"Example University\"",
       .help = "who submits; submission_org of the logs",
       .is_required = true,
       .set_text = [](Spec* s, const std::string& v) { s->set_organization(v); }},
      {.name = "system",
       .example = "\"cluster-a\"",
       .help = "the system under test, by a name that stays the same",
       .is_required = true,
       .set_text = [](Spec* s, const std::string& v) { s->set_system(v); }},
      {.name = "dataset",
       .example = "\"cosmo32\"",
       .help = "a registered one, never a path: 'assay dataset list'",
       .is_required = true,
       .set_text = [](Spec* s, const std::string& v) { s->set_dataset(v); }},
      {.name = "nodes",
       .example = "2",
       .help = "of one run",
       .is_required = true,
       .number_max = kNodeCountMax,
       .set_number = [](Spec* s, int32_t v) { s->set_node_count(v); }},
      {.name = "ranks_per_node",
       .example = "1",
       .help = "training processes on each node; 1 if not given",
       .number_max = kNodeCountMax,
       .set_number = [](Spec* s, int32_t v) { s->set_ranks_per_node(v); }},
      {.name = "runs",
       .example = "10",
       .help = "how many; what the round demands if not given. Of more, a window counts",
       .number_max = kCountMax,
       .set_number = [](Spec* s, int32_t v) { s->set_run_count(v); }},
      {.name = "metric",
       .example = "\"throughput\"",
       .help = "time_to_solution if not given; throughput: many models side by side",
       .set_text = [](Spec* s, const std::string& v) { s->set_metric(v); }},
      {.name = "instances",
       .example = "20",
       .help = "models of a throughput set, in place of runs",
       .number_max = kCountMax,
       .set_number = [](Spec* s, int32_t v) { s->set_run_count(v); }},
      {.name = "backend",
       .example = "\"onednn\"",
       .help =
           "of the native trainer: onednn, onednn-bf16, cuda, reference; what nodes have if not "
           "given",
       .set_text = [](Spec* s, const std::string& v) { s->mutable_trainer()->set_backend(v); }},
      {.name = "epochs_max",
       .example = "128",
       .help = "a run that has not converged by then has failed; 128 if not given",
       .number_max = kCountMax,
       .set_number = [](Spec* s, int32_t v) { s->set_epoch_count_max(v); }},
      {.name = "status",
       .example = "\"onprem\"",
       .help = "submission_status of the logs: onprem, cloud, preview or research",
       .set_text = [](Spec* s, const std::string& v) { s->set_status(v); }},
      {.name = "staging",
       .example = "\"node\"",
       .help =
           "node: nodes copy their part of the dataset first (the default); none: read in place",
       .set_text = [](Spec* s, const std::string& v) { s->set_staging(v); }},
      {.name = "fleet",
       .example = "\"gpu\"",
       .help = "which nodes of a batch system, where the operator names some",
       .set_text = [](Spec* s, const std::string& v) { s->set_fleet(v); }},
      {.name = "allow_preemptible",
       .example = "true",
       .help = "nodes may be taken away while a run goes; false if not given",
       .set_flag = [](Spec* s, bool v) { s->set_allow_preemptible(v); }},
      {.name = "minutes_per_run",
       .example = "40",
       .help = "how long one is expected to take, so that jobs are long enough; 30 if not given",
       .number_max = kCountMax,
       .set_number = [](Spec* s, int32_t v) { s->set_minutes_per_run(v); }},
      {.name = "replacements",
       .example = "1",
       .help =
           "runs that may take the place of runs which the infrastructure failed; 0 if not given",
       .number_max = kCountMax,
       .set_number = [](Spec* s, int32_t v) { s->set_replacement_count_max(v); }},
  };
  return *kKeys;
}

const std::vector<SubmissionTable>& SubmissionTables() {
  static const auto* const kTables = new std::vector<SubmissionTable>{
      {"run_timeout", "\"90m\"", "ends a run that takes longer; 24h if not given"},
      {"hyperparameters", "[hyperparameters], opt_name = \"sgd\" and so on below it",
       "by their names in the log: 'assay rules hyperparameters ROUND'"},
      {"labels", "[labels], gpu = \"a100\" below it", "that every node of a run must have"},
      {"borrowing", "[borrowing], from = \"e-17\" and own = \"e-42\" below it",
       "another entry's hyperparameters, as the rules allow once: 'assay entry borrow'"},
      {"workload", "[workload], command = [...] below it",
       "a program of yours in place of the native trainer: 'assay help adapters'"}};
  return *kTables;
}

std::string SubmissionTopic() {
  std::string text =
      "The submission file\n"
      "TOML, read by 'assay plan FILE', which finds mistakes with their line, and 'assay submit "
      "FILE'.\n\n"
      "Required\n";
  for (const bool is_required : {true, false}) {
    if (!is_required) absl::StrAppend(&text, "\nOptional\n");
    for (const SubmissionKey& key : SubmissionKeys())
      if (key.is_required == is_required)
        absl::StrAppend(&text, KeyLine(key.name, key.example, key.help));
  }
  absl::StrAppend(&text, "\nTables, after all keys of the top level, and a duration\n");
  for (const SubmissionTable& table : SubmissionTables())
    absl::StrAppend(&text, KeyLine(table.name, table.example, table.help));
  absl::StrAppend(&text, "\nKeys of [workload]\n");
  for (const SubmissionTable& key : WorkloadKeyTexts())
    absl::StrAppend(&text, KeyLine(key.name, key.example, key.help));
  absl::StrAppend(&text, "\nHyperparameters of the native trainer\n  ",
                  absl::StrJoin(rules::KnownHyperparameters(), "\n  "),
                  "\nA program's have the names that it gives them.\n\n"
                  "A complete file, and what the settings do: docs/submitter.md.\n");
  return text;
}

}  // namespace assay::cli
