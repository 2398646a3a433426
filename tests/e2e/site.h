// Assay installed into a temporary directory, with a user of its own who types commands.
//
// The programs are the real ones, laid out as an installation: bin/ beside share/assay/. What the
// user has (home, runtime directory, cache) lies in the same directory, so that nothing of this
// machine is seen or changed.

#ifndef TESTS_E2E_SITE_H_
#define TESTS_E2E_SITE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"

#include "common/process.h"
#include "tests/support/held_port.h"
#include "tests/support/log_tail.h"
#include "tests/support/temp_dir.h"

namespace assay::testing {

using Json = nlohmann::json;

// What a command left behind.
struct Outcome {
  int exit_code = -1;
  std::string out;
  std::string err;

  std::string Text() const;  // all of it, for a failed expectation
};

class Site {
 public:
  // Installs the programs and one facility round, kRound: cubes of 32, 4 filters, 3 runs.
  Site();

  // Runs `assay ARGUMENTS` to its end in the site's directory.
  Outcome Assay(const std::vector<std::string>& arguments) const;
  // The same with --json; fails the test if it does not exit with `exit_code`. Null if no JSON.
  Json AssayJson(std::vector<std::string> arguments, int exit_code = 0) const;
  // Starts one of the programs, or any other; its output goes to `output_path`.
  ProcessId Start(std::vector<std::string> argv, const std::string& output_path) const;
  Outcome RunProgram(std::vector<std::string> argv) const;

  std::string Program(absl::string_view name) const;
  std::string Path(absl::string_view name) const { return dir_.Path(name); }
  // More for the environment of every command: "NAME=value".
  void Export(std::string variable) { environment_.push_back(std::move(variable)); }

 private:
  const TempDir dir_;
  std::vector<std::string> environment_;
};

// assayd of a site as an operator sets it up, with two local workers of one core each. Ends with
// the object, and its workers with it.
class Coordinator {
 public:
  // Runs `assay admin init`, starts assayd and lets the site's commands find it.
  explicit Coordinator(Site* site, int worker_count = 2);
  // The same with another launcher than the local one, in which PORT stands for where assayd
  // listens, at an address of this machine.
  Coordinator(Site* site, const std::string& launcher, std::string host = "127.0.0.1");
  ~Coordinator();

  // Starts assayd (again) and waits until it serves.
  void Start();
  // kill -9; its agents live on.
  void Kill();
  // Waits until assayd logs a line with `text`; false after two minutes.
  bool AwaitLogLine(absl::string_view text) { return log_.WaitFor(text).has_value(); }
  std::string address() const { return absl::StrCat(host_, ":", port_.number()); }
  // The process that the local launcher started for `worker` last.
  ProcessId Agent(const std::string& worker) const;

 private:
  Site* const site_;
  const std::string host_;
  const HeldPort port_;  // the same through its restarts
  LogTail log_;
  std::optional<ProcessId> process_;
};

// An agent that an operator has enrolled and started by hand, one thread for each trainer. Ends
// with the object; before the coordinator's, please.
class Worker {
 public:
  // Where it runs, if not beside the coordinator.
  struct Place {
    std::string host = "127.0.0.1";     // at which its ranks meet
    std::vector<std::string> prefix{};  // of the command that starts it there
    std::string config{};               // more for its configuration
  };
  // `server_address`: host:port of the coordinator.
  Worker(const Site& site, const std::string& name, const std::string& server_address,
         const Place& place);
  Worker(const Site& site, const std::string& name, const std::string& server_address)
      : Worker(site, name, server_address, Place()) {}
  ~Worker();
  const ProcessId& process() const { return process_; }
  const std::string& data_directory() const { return data_directory_; }

 private:
  const std::string data_directory_;
  ProcessId process_;
};

// The round that every site has.
inline constexpr char kRound[] = "e2e-small";

// A submission file for CosmoFlow in the closed division on two nodes.
struct SubmissionText {
  std::string round = kRound;
  std::string dataset = "small";
  std::string opt_name = "sgd";
  int epochs_max = 12;
  int global_batch_size = 4;
  std::string base_learning_rate = "0.01";
  // Appended to [hyperparameters]; a facility's round fixes its model there.
  std::string more = "cube_edge = 32\nbase_filter_count = 4\n";

  std::string ToString() const;
};

// Writes the file and returns its path.
std::string WriteSubmission(const Site& site, const std::string& name, const SubmissionText& text);

// Makes a dataset that a network learns in a few epochs, and registers it. Fails the test if not.
void ProvideBeacons(const Site& site, const std::string& id, int train_samples, int eval_samples);

// The result file among a run's artifacts, from `run show --json`. Null if there is none.
Json ResultArtifact(const Json& run);

// The events of a run on a node are numbered 1, 2, 3... Returns how many there are; fails the test
// if one is missing.
int64_t ExpectNoGaps(const Site& site, const std::string& run, int node_rank);

// A folder of ASSAY_ORACLE_DIR; empty where it is absent, which is a failure where CI is set.
std::string OraclePath(absl::string_view name);

}  // namespace assay::testing

#endif  // TESTS_E2E_SITE_H_
