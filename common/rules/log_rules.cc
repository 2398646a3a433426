#include "common/rules/log_rules.h"

#include <utility>

namespace assay::rules {
namespace {

constexpr char kLogSection[] = "MLLOG format";
constexpr char kTimingSection[] = "HPC rules, Timing";

constexpr char kPowerSection[] = "HPC rules, Power";
constexpr char kRanksSection[] = "Assay, runs that are watched";

constexpr TextRule kRules[] = {
    {"R-CFG-001", "", "a division, benchmark and options that the round has",
     "Divisions and benchmarks",
     "log submission_division, submission_benchmark and scheduler_type with the round's names"},
    {"R-CLK-001", "", "a node whose wall clock nobody sets while a run goes on", kTimingSection,
     "find out what set it: a time service that steps (chronyc tracking), or an operator"},
    {"R-CLK-002", "", "a node whose monotonic clock keeps to the hardware's within 600 ppm",
     kTimingSection,
     "let the time service settle first (chronyc tracking), see what adjtimex --print says, and "
     "repeat the run"},
    {"R-CLK-003", "run_stop", "a time by the log that is the time by the node's clock",
     kTimingSection,
     "stamp records with a clock that nobody sets in mid-run, and write them at once"},
    {"R-CLK-004", "", "a node whose clocks keep to the coordinator's", kTimingSection,
     "repeat the run on a machine that its host does not pause or slow down"},
    {"R-IOB-001", "", "training data that is read from storage once by the end of epoch 1",
     kTimingSection,
     "read the registered dataset, not a copy in memory; 'assay run show ID --bytes' has what each "
     "node read"},
    {"R-IOB-002", "", "no cache of the nodes in a round whose clock runs while data is staged",
     kTimingSection,
     "copy all of the dataset from where it is registered; nodes may start from a cache in rounds "
     "that let staging be off the clock"},
    {"R-IOB-003", "",
     "a dataset on storage that all nodes share, in a round whose clock runs while data is staged",
     kTimingSection,
     "register the dataset where it lies on the shared file system; if the nodes' storage is one "
     "device that all of them read, tell the reviewers"},
    {"R-LOG-001", "", "a JSON object behind the token", kLogSection,
     "write records with one write per line, and remove damaged lines' cause"},
    {"R-LOG-002", "", "records that begin with \":::MLLOG \"", kLogSection,
     "give the log that the run wrote, not its console output"},
    {"R-LOG-003", "", "a JSON object with time_ms (a number), key, value and metadata", kLogSection,
     "write the six members that the reference logger writes"},
    {"R-LOG-004", "", "records of at most 16 MiB", kLogSection,
     "log summaries instead of whole arrays, and end every record with a line feed"},
    {"R-LOG-005", "", "a file that can be read", kLogSection,
     "check the path and its permissions, or fetch the file again"},
    {"R-NET-001", "", "messages between ranks that ranks of the run have sent", kRanksSection,
     "find out who else sends packets on the network between the nodes"},
    {"R-PAR-001", "", "ranks whose parameters are the same to the last bit after each epoch",
     kRanksSection,
     "look for a defect of memory, processor or network on the nodes; repeat the run on others"},
    {"R-PAU-001", "", "ranks that nobody stops while the run goes on", kTimingSection,
     "find out who sent SIGSTOP: a debugger, a job scheduler or another user"},
    {"R-PAU-002", "", "a node that stands still for no second while a run goes on", kTimingSection,
     "repeat the run on a node that nobody suspends, freezes or overloads"},
    {"R-PAU-003", "", "ranks that nobody traces while the run goes on", kTimingSection,
     "detach the debugger (gdb, strace) that the finding names"},
    {"R-PAU-004", "", "ranks whose control group nobody freezes while the run goes on",
     kTimingSection,
     "find out who freezes it: a job scheduler that suspends jobs, or a container runtime"},
    {"R-PAU-005", "", "ranks of a node that do not all wait for two seconds for what does not come",
     kTimingSection,
     "find out what they waited for: a lock, a server that did not answer, or ranks of other "
     "nodes"},
    {"R-PWR-010", "",
     "a reading of each node's meter at least every 1.5 s from run_start to run_stop",
     kPowerSection,
     "see what kept the meter or the step from answering; a power entry needs the run once more"},
    {"R-PWR-011", "", "at least 60 readings of each node", kPowerSection,
     "nothing, if no power is handed in; a power entry needs runs that last a minute"},
    {"R-PWR-012", "", "a meter of the whole node on each node", kPowerSection,
     "let the agent read the meter on all nodes ('assay run telemetry' shows which it reads), or "
     "run on nodes that have one"},
    {"R-PWR-013", "", "meters of one node that agree within 5 %", kPowerSection,
     "compare both with a calibrated meter; the one named first is taken"},
    {"R-SET-001", "", "runs of a set on the same nodes in the same order", "Assay, sets of runs",
     "compare the times of the runs before and after the change ('assay set spread'); submit again "
     "where they differ"},
    {"R-SET-002", "", "runs of a set made of the same materials", "Assay, sets of runs",
     "compare the materials_*.json of the two runs ('assay run files'); submit again if they are "
     "not "
     "one program on one system"},
    {"R-TIM-001", "run_start", "run_start at or before the witnessed first touch of the data",
     kTimingSection, "log run_start before the first read of the dataset"},
    {"R-TIM-002", "run_start", "run_start before the first touch of the data", kTimingSection,
     "log run_start before the first read of the dataset"},
    {"R-TIM-003", "run_start", "a first touch of the dataset, witnessed by the node",
     kTimingSection,
     "let the agent use fanotify (as root) or inotify; its step log says what failed"},
    {"R-TIM-004", "", "staged data on storage, not in memory, when the clock starts",
     kTimingSection,
     "fsync each copy and give it up with posix_fadvise(POSIX_FADV_DONTNEED) before staging_stop"},
    {"R-TIM-005", "", "no data in memory after the caches were reset", kTimingSection,
     "end what maps or reads the dataset on the node; caches_N.json of the run says what does"},
    {"R-TIM-006", "run_start", "run_start at or before any touch of the data that was observed",
     kTimingSection,
     "run the agent as root, so that a touch is attributed to a process; keep others off the "
     "dataset"},
    {"R-TIM-007", "",
     "nothing of the data in memory or read from its device before its first touch", kTimingSection,
     "end what holds the dataset open or mapped on the node, or reads its device; the first touch "
     "of the run has the figures ('assay run show --touch -o json')"},
    {"R-TIM-008", "", "a first touch on every node as well witnessed as the round demands",
     kTimingSection,
     "'assay run show ID --touch' names the holes that were left open on each node, "
     "docs/reviewer.md "
     "what helps against each"},
};

}  // namespace

std::span<const TextRule> LogRules() {
  return kRules;
}

Finding LogFinding(absl::string_view id, std::string error_class, int64_t line, std::string found) {
  Finding finding = Violation(FindRule(kRules, id), std::move(error_class), std::move(found));
  finding.line = line;
  return finding;
}

}  // namespace assay::rules
