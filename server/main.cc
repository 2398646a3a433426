// assayd, the coordinator: flags, signals, exit codes.

#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <iostream>
#include <optional>
#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/flags/usage_config.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "common/daemon.h"
#include "common/log.h"
#include "common/process.h"
#include "server/api/services.h"
#include "server/config.h"
#include "server/daemon.h"
#include "server/offline.h"

ABSL_FLAG(std::string, config, "", "path of the configuration, a ServerConfig as text proto");
ABSL_FLAG(bool, check_config, false,
          "only read and check the configuration: 0 if it is good, 2 if not, with all problems");
ABSL_FLAG(bool, accept_data_loss, false,
          "start although acknowledged events are missing; the log of events records it, and ids "
          "are not given again");
ABSL_FLAG(bool, verify, false,
          "only look for damage in the data directory of a daemon that does not run");
ABSL_FLAG(std::string, verify_backup, "",
          "only look for damage in the backup in this directory; needs no configuration");
ABSL_FLAG(std::string, backup, "",
          "only back up, into this directory, the data of a daemon that does not run");
ABSL_FLAG(std::string, restore, "",
          "only make a data directory of the backup in this directory; needs no configuration");
ABSL_FLAG(std::string, into, "", "with --restore: the data directory, empty or not there yet");
ABSL_FLAG(bool, json, false,
          "with --verify, --verify_backup, --backup, --restore: a JSON object a line");
ABSL_FLAG(int32_t, end_with, 0,
          "end when the process of this number does, which has started this one; 0: go on");

namespace assay {
namespace {

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;  // the configuration is wrong: restarting does not help

OfflineOutput Output() {
  return {.is_json = absl::GetFlag(FLAGS_json),
          .out = &std::cout,
          .terminal = isatty(STDERR_FILENO) != 0 ? &std::cerr : nullptr};
}

int ExitCodeOf(const absl::StatusOr<int64_t>& fault_count) {
  if (fault_count.ok()) return *fault_count == 0 ? 0 : kExitFailure;
  std::cerr << fault_count.status().message() << "\n";
  return absl::IsDataLoss(fault_count.status()) ? kExitFailure : kExitUsage;
}

// What is done without a configuration; nothing if that was not asked for.
std::optional<absl::StatusOr<int64_t>> DoWithBackup() {
  const std::string verified = absl::GetFlag(FLAGS_verify_backup);
  if (!verified.empty()) return VerifyBackupOffline(verified, Output());
  const std::string restored = absl::GetFlag(FLAGS_restore);
  const std::string into = absl::GetFlag(FLAGS_into);
  if (restored.empty() && into.empty()) return std::nullopt;
  if (restored.empty() || into.empty())
    return absl::InvalidArgumentError("give both --restore=BACKUP and --into=DIRECTORY");
  return RestoreOffline(restored, into, Output());
}

// What is done with the data of a daemon that does not run; nothing if that was not asked for.
std::optional<absl::StatusOr<int64_t>> DoWithData(const v1::ServerConfig& config) {
  if (absl::GetFlag(FLAGS_verify)) return VerifyOffline(config, Output());
  const std::string backup = absl::GetFlag(FLAGS_backup);
  if (!backup.empty()) return BackUpOffline(config, backup, Output());
  return std::nullopt;
}

// Which flags --help shows: those of this file and no library's. --version is Abseil's own flag.
absl::FlagsUsageConfig UsageConfig() {
  const auto is_ours = [](absl::string_view file) {
    return absl::EndsWith(file, "server/main.cc");
  };
  absl::FlagsUsageConfig config;
  config.contains_help_flags = is_ours;
  config.contains_helpshort_flags = is_ours;
  config.contains_helppackage_flags = is_ours;
  config.version_string = [] { return absl::StrCat("assayd ", api::kBackendVersion, "\n"); };
  return config;
}

int Main() {
  // Also what libraries make, and whoever started us may have any.
  umask(S_IRWXG | S_IRWXO);
  if (const auto fault_count = DoWithBackup()) return ExitCodeOf(*fault_count);
  if (absl::GetFlag(FLAGS_config).empty()) {
    std::cerr << "give the configuration: assayd --config=<file>; assay admin init writes one\n";
    return kExitUsage;
  }
  if (absl::GetFlag(FLAGS_end_with) != 0) EndWithParent(absl::GetFlag(FLAGS_end_with));
  const absl::StatusOr<v1::ServerConfig> config = LoadServerConfig(absl::GetFlag(FLAGS_config));
  if (!config.ok()) {
    std::cerr << config.status().message() << "\n";
    return kExitUsage;
  }
  if (absl::GetFlag(FLAGS_check_config)) {
    for (const std::string& warning : ServerConfigWarnings(*config))
      std::cerr << absl::GetFlag(FLAGS_config) << ": warning: " << warning << "\n";
    return 0;
  }
  if (const auto fault_count = DoWithData(*config)) return ExitCodeOf(*fault_count);
  const sigset_t signals = BlockEndSignals();
  RaiseDescriptorLimit(kDaemonDescriptors);
  const absl::Status status = Serve(*config, signals, absl::GetFlag(FLAGS_accept_data_loss));
  if (status.ok()) return 0;
  LOG(ERROR) << "cannot serve: " << status.message();
  return kExitFailure;
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "The coordinator of Assay.\n\n  assayd --config=<file>\n\n"
      "The configuration is a text proto (assay.v1.ServerConfig); assay admin init writes one.\n"
      "SIGTERM and SIGINT end it in order. Exit status: 1 it cannot serve, 2 the configuration is "
      "wrong.");
  absl::SetFlagsUsageConfig(assay::UsageConfig());
  absl::ParseCommandLine(argc, argv);
  return assay::Main();
}
