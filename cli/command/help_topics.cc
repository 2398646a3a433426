// The help topics. What a table in the code defines is made from that table.

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "cli/command/exit_status.h"
#include "cli/command/help.h"
#include "common/client/config.h"
#include "common/program_contract.h"

namespace assay::cli {
namespace {

std::string EnvironmentTopic() {
  std::string text =
      "Settings, strongest first\n"
      "  1. options of the command line\n"
      "  2. environment variables\n"
      "  3. ./assay.toml, here or above, up to the root of the repository\n"
      "  4. $XDG_CONFIG_HOME/assay/config.toml (~/.config/assay/config.toml)\n"
      "  5. /etc/assay/config.toml\n"
      "  6. built-in values\n"
      "'assay config list --origin' says which one counted. Secrets are refused in assay.toml.\n\n"
      "Keys and their variables\n";
  for (const client::SettingKey& key : client::SettingKeys())
    absl::StrAppendFormat(&text, "  %-11s %-17s %s\n", key.name, key.variable, key.help);
  absl::StrAppend(
      &text,
      "\nContexts name coordinators, in your file or the system's:\n"
      "  context = \"prod\"\n"
      "  [contexts.prod]\n"
      "  server = \"bench.example.org:7443\"\n"
      "'assay config use NAME' chooses one, --context NAME for one command. What stands\n"
      "beside the choice, such as --server beside --context, is stronger.\n"
      "\nWithout server and socket the socket of a running 'assay dev' is used\n"
      "($XDG_RUNTIME_DIR/assay/assayd.sock), then /run/assay/assayd.sock.\n\n"
      "Other variables\n"
      "  NO_COLOR          no colour if set\n"
      "  CLICOLOR_FORCE    colour even into a pipe if set and not 0\n"
      "  ASSAY_RULES_KEY   key that verifies frozen rules, where --public-key is not given\n"
      "  COLUMNS           width where there is no terminal\n"
      "  TERM=dumb         no colour, no redrawn lines\n"
      "  LC_ALL, LANG      symbols only where the character set is UTF-8\n"
      "  TZ                time zone of the times in tables\n");
  return text;
}

std::string ExitCodeTopic() {
  std::string text = "Exit codes\n";
  for (const ExitStatusRow& row : ExitStatusTable())
    absl::StrAppendFormat(&text, "  %3d  %s\n", static_cast<int>(row.status), row.meaning);
  absl::StrAppend(&text,
                  "\nThey are part of the product and never change their meaning. Data goes to\n"
                  "stdout, everything else to stderr, so a pipe sees data or nothing.\n");
  return text;
}

constexpr char kFormatting[] =
    R"(Output
  -o table    for people; the default on a terminal. Cut to its width
  -o wide     every column, not cut
  -o plain    tab-separated, with a header line; the default in a pipe
  -o csv      comma-separated, RFC 4180
  -o json     one document; --json is the same
  -o ndjson   one object per line, for streams
  -o yaml     the same document as YAML
  -o name     ids only, one a line: assay entry list -o name | xargs -n1 assay score
  -o tpl=TEXT text for each item, with {field} for what JSON has under that name, {a.b} for a
              member's member, {{ and }} for braces, \n and \t:
              assay run list -o 'tpl={id}\t{seconds}'
  -H          no header line

  --json=id,state   these fields only
  --json=?          which fields there are
  --jq '.items[].id'   what a jq program makes of the JSON; strings without quotes (numbers are
                       doubles there: whole ones above 2^53 are rounded)

JSON carries "schema": "assay.run/v1". Fields may be added to a schema; taking one away or giving
it another meaning makes v2. A field that is absent is not known yet: there are no nulls and no
zeros in its place. Times are RFC 3339 in UTC, durations carry their unit in the name.
Tables show local time; plain and CSV show the same values as JSON.
)";

constexpr char kIds[] =
    R"(Ids
  e-42     an entry: one submission of one benchmark on one system
  s-42     the run set of entry e-42
  r-901    a run: one training from start to result file
  w0       a node, by the name its worker was enrolled under
  cosmo32  a dataset, by the name it was registered under
  @last    the newest entry you may see; for runs, its newest run that has begun

Numbers are never reused. A run never restarts: one that failed stays as evidence and a
replacement with a new seed takes its place.
)";

constexpr char kRules[] =
    R"(Rules
Every entry belongs to a round, and a round is a frozen rule set with a digest: which keys a log
must have, which values are allowed, the quality target, how many runs, how the score is formed.
The same code judges at submission, while a run is going, at the end, and offline:

  $ assay rules list                          rounds, with digests
  $ assay rules explain R-HP-004              what a rule wants and where it stands
  $ assay rules check --ruleset 3.0.0 result_1.txt
  $ assay rules diff v2.0 v3.0                what a round changed
  $ assay score DIR --round v1.0              judge and score a results tree
  $ assay package check DIR --round v1.0      check a whole submission package

Closed division fixes the optimizer and the allowed hyperparameters; open does not. A facility's
own round ('is_mlperf_result': false) scales a benchmark down to fit its machines; its scores are
not MLPerf results and say so wherever they are shown.
)";

constexpr char kTiming[] =
    R"(Timing
The score of a run is run_stop - run_start from its log. Logs are written by the program under
test, so the nodes witness what they can:

  first touch   the node sees the dataset being read, by fanotify or inotify, not by asking the
                trainer. run_start must come before it
  three clocks  every event has the worker's wall clock, its monotonic clock and the coordinator's
                receive time; the offset between hosts is estimated and kept with its uncertainty
  no pauses     stamps within a run are wall clock at start plus monotonic time since

The olympic score drops the fastest and the slowest run and takes the mean of the others; one run
that did not converge may count as the slowest. 'assay logs RUN --events' shows both clocks side
by side; 'assay score ENTRY' shows which runs were dropped.
)";

std::string AdaptersTopic() {
  std::string text =
      R"(Adapters: your own program under contract 1
A submission with a table [workload] runs your program in place of Assay's trainer:

  [workload]
  command  = ["python3", "${ASSAY_CODE}/train.py"]   # no shell; ${ASSAY_...} is replaced
  source   = "train"                                 # a folder beside the file, sent along
  image    = "/shared/numpy.sqsh"                    # its own system; squashfs or tar file
  launcher = "per-rank"                              # per-node (torchrun), srun, mpirun (MPI)

The program imports nothing of Assay. It
  1. reads its variables, and no sample of the dataset yet
  2. appends MLLOG lines to ASSAY_LOG on rank 0: identity, seed and hyperparameters as given,
     init_start, init_stop, run_start
  3. reads ASSAY_DATASET from run_start on, and trains
  4. logs epochs and the quality, then run_stop, and ends with 0

The nodes clear caches, witness the first touch, stamp the log's lines as they come, and end all
that is left. What is logged is compared with what was given: 'assay rules explain R-WRK-021' and
the like. 'assay plan FILE' finds mistakes with their line before anything runs.

Its variables, besides "env" of the table, PATH, HOME, TMPDIR and those of PyTorch
)";
  std::string line = " ";
  for (const ContractVariable& variable : kContractVariables) {
    constexpr size_t kWidth = 92;
    if (line.size() + std::strlen(variable.name) + 1 > kWidth)
      absl::StrAppend(&text, std::exchange(line, " "), "\n");
    absl::StrAppend(&line, " ", variable.name);
  }
  absl::StrAppend(&text, line,
                  "\n\nWhat each means, how runs end and complete examples: docs/adapters.md and\n"
                  "deploy/examples/python. A benchmark of your own: docs/rounds.md.\n");
  return text;
}

}  // namespace

const std::vector<HelpTopic>& HelpTopics() {
  static const auto* const kTopics = [] {
    auto* const topics = new std::vector<HelpTopic>{
        {"adapters", "your own program as the workload of an entry", AdaptersTopic()},
        {"environment", "settings, variables, files", EnvironmentTopic()},
        {"exit-codes", "what the exit status means", ExitCodeTopic()},
        {"formatting", "tables, plain text, JSON, CSV", kFormatting},
        {"ids", "how things are named", kIds},
        {"query", "questions to the history: filters, fields, groups", QueryTopic()},
        {"rules", "rounds, divisions, offline checks", kRules},
        {"timing", "what is timed and who witnesses it", kTiming},
    };
    for (HelpTopic& topic : FileTopics())
      topics->push_back(std::move(topic));
    std::sort(topics->begin(), topics->end(),
              [](const HelpTopic& a, const HelpTopic& b) { return a.name < b.name; });
    return topics;
  }();
  return *kTopics;
}

}  // namespace assay::cli
