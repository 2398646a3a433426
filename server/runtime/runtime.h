// Everything behind the API, wired: store, core thread, queries, uploads, effects, watchers.

#ifndef SERVER_RUNTIME_RUNTIME_H_
#define SERVER_RUNTIME_RUNTIME_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "common/clock.h"
#include "server/core/core.h"
#include "server/runtime/certificate_table.h"
#include "server/runtime/core_thread.h"
#include "server/runtime/effects.h"
#include "server/runtime/loop_observer.h"
#include "server/runtime/queries.h"
#include "server/runtime/rule_book.h"
#include "server/runtime/silence_watch.h"
#include "server/runtime/token_table.h"
#include "server/runtime/upkeep.h"
#include "server/runtime/uploads.h"
#include "server/runtime/verifications.h"
#include "server/runtime/watchers.h"

namespace assay::runtime {

struct RuntimeOptions {
  std::string data_directory;
  std::vector<std::string> round_paths;
  // Goes on although acknowledged events are missing (store.h).
  bool is_loss_accepted = false;
  core::Policy policy;  // its secret is filled in from the data directory
  CoreThreadOptions core_thread;
  std::vector<core::SwitchPower> switches;  // with whose power each run is charged
  LoopObserver* observer = nullptr;         // may be none; must outlive the runtime
  bool is_compressing = true;               // the artifacts of what has ended (compressor.h)
};

// Thread-safe once opened. The destructor stops it in order: no new commands, last commit, close.
class Runtime {
 public:
  // Locks the data directory, opens (creates, migrates) the database, loads the state and starts
  // all threads. `clock` must outlive it. FAILED_PRECONDITION: another daemon has the directory,
  // the database is newer than this program, or the file system is not local. INVALID_ARGUMENT: a
  // round file is wrong. DATA_LOSS: the database is damaged, or is not what was acknowledged.
  static absl::StatusOr<std::unique_ptr<Runtime>> Open(const Clock* clock, RuntimeOptions options);
  ~Runtime();

  CoreThread& core();
  Queries& queries();
  Uploads& uploads();
  SilenceWatch& silences();
  Watchers& watchers();
  Verifications& verifications();
  Upkeep& upkeep();
  const TokenTable& tokens() const;
  const CertificateTable& certificates() const;
  const RuleBook& rules() const;
  // The file; SQLite keeps others beside it.
  std::string database_path() const;

  // From now on `launcher` gets nodes; before that nobody is asked for any. It must outlive the
  // call of StopLaunching.
  void StartLaunching(launch::Launcher* launcher, core::LauncherStarted started);
  void StopLaunching();

  // Ends in order; calls that still wait are answered. Idempotent.
  void Stop();

 private:
  struct Parts;
  explicit Runtime(std::unique_ptr<Parts> parts);
  const std::unique_ptr<Parts> parts_;
};

}  // namespace assay::runtime

#endif  // SERVER_RUNTIME_RUNTIME_H_
