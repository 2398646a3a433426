#include "common/package/findings.h"

#include <algorithm>

#include "common/log.h"
#include "common/package/text.h"

namespace assay::package {
namespace {

using rules::Severity;
constexpr Severity kError = Severity::kError;
constexpr Severity kWarning = Severity::kWarning;

constexpr char kLayout[] = "Package checker, layout";
constexpr char kRuns[] = "Package checker, runs";
constexpr char kBypass[] = "Package checker, bypasses";
constexpr char kSystem[] = "System description checker";
constexpr char kPolicy[] = "Submission rules, system description";
constexpr char kSeed[] = "Seed checker";
constexpr char kPower[] = "Package checker, power";
constexpr char kRcp[] = "RCP checker";
constexpr char kRepository[] = "Repo checker";

constexpr PackageRule kRules[] = {
    {"R-DESC-001", kError, "description_json", "a JSON object in UTF-8", kSystem,
     "repair the file; any JSON editor shows where it breaks"},
    {"R-DESC-002", kError, "description_missing", "all 33 members; their values may be empty",
     kSystem, "add the member; an empty text is enough for the checker"},
    {"R-DESC-003", kError, "description_type", "a text in quotation marks", kSystem,
     "put the value into quotation marks: \"8\""},
    {"R-DESC-004", kWarning, "description_number", "a whole number in decimal digits", kSystem,
     "write digits only, or the summary of results cannot be made"},
    {"R-DESC-005", kWarning, "description_division", "\"closed\" or \"open\"", kSystem,
     "write closed in lower case, or the entry is taken for open"},
    {"R-DESC-006", kWarning, "description_status", "available, onprem, cloud, preview or research",
     kPolicy, "name the category of availability"},
    {"R-DESC-007", kWarning, "description_empty", "a meaningful answer", kPolicy,
     "fill it in; reviewers will ask"},
    {"R-DESC-008", kWarning, "description_name", "the name of the file without .json", kPolicy,
     "rename the file or the system; links of the summary are made from system_name"},
    {"R-DESC-009", kWarning, "description_submitter", "the name of the organisation's folder",
     kPolicy, "write the same name in both places"},
    {"R-DESC-010", kWarning, "description_unused", "results of every system described", kLayout,
     "add results/SYSTEM or remove the description"},
    {"R-PKG-001", kWarning, "unexpected_entry",
     "result_*.txt, pruned_results, power, scaling.json or package_checker_params", kLayout,
     "remove it, or rename it to result_<i>.txt if it is a log"},
    {"R-PKG-002", kError, "no_results", "a folder ORG/results that can be listed", kLayout,
     "put the logs into results/SYSTEM/strong/BENCHMARK"},
    {"R-PKG-003", kError, "scaling_level", "results/SYSTEM/(strong|weak)/BENCHMARK", kLayout,
     "move the benchmark's folder to where the layout has it"},
    {"R-PKG-004", kError, "no_division",
     "systems/SYSTEM.json, a JSON object with the member division", kLayout,
     "describe each system that has results"},
    {"R-PKG-005", kWarning, "unknown_benchmark", "a benchmark of the round", kLayout,
     "name the folder after the benchmark; it is not checked now"},
    {"R-PKG-006", kError, "run_count", "exactly the required number of runs", kRuns,
     "hand in that many result_*.txt: no more, no less"},
    {"R-PKG-007", kError, "run_count", "at least the required number of runs", kRuns,
     "hand in more instances"},
    {"R-PKG-008", kWarning, "one_failed_run", "only runs that comply", kRuns,
     "nothing: one failed run is allowed and counts as the slowest"},
    {"R-PKG-009", kError, "failed_runs", "at most one run that does not comply", kRuns,
     "see the findings of each log"},
    {"R-PKG-010", kError, "crash", "logs that the reference checker can read to the end", kRuns,
     "repair the log or hand in another run; the whole package is refused otherwise"},
    {"R-PKG-011", kError, "unreadable", "a readable file inside the package", kLayout,
     "replace it with a copy of the file"},
    {"R-PKG-012", kWarning, "pruned_run", "pruned logs that comply", kRuns,
     "nothing checks them, but reviewers may ask why this run ended so"},
    {"R-PKG-013", kWarning, "pruned_strong", "pruned_results in weak folders only", kRuns,
     "remove the folder: a time-to-solution set has no pruned runs"},
    {"R-PKG-014", kWarning, "params_ignored", "the one word rcp-bypass or seed-checker-bypass",
     kBypass,
     "write the word with hyphens, without a line end behind it, in the system's or the "
     "benchmark's folder"},
    {"R-PKG-015", kWarning, "seed_bypass", "seeds that are checked", kBypass,
     "log seeds; reviewers see that the check was bypassed"},
    {"R-PKG-016", kWarning, "rcp_bypass", "convergence that is checked", kBypass,
     "send the missing reference points; reviewers see that the check was bypassed"},
    {"R-PKG-017", kError, "params_unreadable", "a text file in UTF-8", kBypass,
     "rewrite package_checker_params or remove it"},
    {"R-PKG-018", kWarning, "scaling_json", "an object with the number scaling_factor", kRcp,
     "remove scaling.json; the convergence check writes it anew"},
    {"R-PKG-019", kWarning, "log_differs", "logs that say what the package says", kLayout,
     "log the benchmark and division under which the runs are handed in"},
    {"R-PKG-020", kWarning, "throughput_alone",
     "a time-to-solution result of the same benchmark beside throughput", kRuns,
     "hand in results/SYSTEM/strong/BENCHMARK too"},
    {"R-PKG-021", kWarning, "code",
     "benchmarks/BENCHMARK/SYSTEM with README.md, setup.sh, init_datasets.sh, run_and_time.sh and "
     "SYSTEM_IMPL.json",
     kLayout, "add what others need to run it again"},
    {"R-PKG-022", kWarning, "too_deep", "result files in the benchmark's folder", kLayout,
     "move them up; they are not checked where they are"},
    {"R-PKG-023", kWarning, "scaling_differs", "the factor that follows from the logs", kRcp,
     "remove scaling.json; the convergence check writes it anew"},
    {"R-PWR-001", kError, "power_missing", "power/result_<i> for every run", kPower,
     "add the folder of the run, or hand in no power at all"},
    {"R-PWR-002", kError, "power_numbers", "node_<j> and sw_<k>, numbered from 0 without gaps",
     kPower, "rename the files"},
    {"R-PWR-003", kError, "power_counts", "as many nodes and switches in every run", kPower,
     "add the missing files"},
    {"R-PWR-004", kError, "power_crash", "names that end in _<number>, and folders", kPower,
     "rename the files; the whole package is refused otherwise"},
    {"R-PWR-005", kWarning, "power_other", "node_<j>.txt and sw_<k>.txt, each number once", kPower,
     "remove what is neither"},
    {"R-RCP-001", kError, "rcp_failed", "no faster convergence, in epochs, than the reference",
     kRcp, "use the reference's model and data, or submit to the open division"},
    {"R-RCP-002", kError, "rcp_unreadable", "logs from which convergence can be read", kRcp,
     "log global_batch_size, epoch_num with each evaluation, and the status of run_stop"},
    {"R-REPO-001", kWarning, "repo_name", "names without blanks and without a dot in front",
     kRepository, "rename it or leave it out: the repository does not take it"},
    {"R-REPO-002", kWarning, "repo_size", "files of at most 50 MiB", kRepository,
     "compress it or leave it out: the repository does not take it"},
    {"R-REPO-003", kWarning, "repo_link", "links that lead somewhere in the package", kRepository,
     "replace the link with what it should lead to"},
    {"R-REPO-004", kWarning, "repo_unreadable", "folders that can be listed", kRepository,
     "make it readable, or nest less deeply"},
    {"R-SEED-001", kError, "no_seed", "a seed in every log", kSeed,
     "log the key seed in every run, or ask for seed-checker-bypass"},
    {"R-SEED-002", kError, "same_seed", "a seed that no other run logged from the same line", kSeed,
     "run again with a fresh seed"},
    {"R-SEED-003", kError, "bad_seed", "a whole number, with file and lineno in the metadata",
     kSeed, "log the seed as an integer with the reference logger"},
    {"R-SEED-004", kError, "seed_log", "a log without damaged lines", kSeed,
     "see the findings of the log"},
    {"R-SEED-005", kWarning, "several_seeds", "one seed in every log", kSeed,
     "nothing, if each is meant; each must differ between runs"},
};

}  // namespace

std::span<const PackageRule> PackageRules() {
  return kRules;
}

rules::Finding Violation(absl::string_view id, absl::string_view found,
                         absl::string_view expected) {
  const auto rule = std::find_if(std::begin(kRules), std::end(kRules),
                                 [&](const PackageRule& candidate) { return candidate.id == id; });
  CHECK(rule != std::end(kRules)) << "id=" << id;
  return {.rule_id = rule->id,
          .severity = rule->severity,
          .error_class = rule->error_class,
          .expected = std::string(expected.empty() ? rule->expected : expected),
          .found = Printable(found),
          .section = rule->section,
          .remedy = rule->remedy};
}

int CountErrors(std::span<const PackageFinding> findings) {
  return static_cast<int>(
      std::count_if(findings.begin(), findings.end(), [](const PackageFinding& found) {
        return found.finding.severity == rules::Severity::kError;
      }));
}

}  // namespace assay::package
