// assayd, the coordinator: flags, signals, exit codes.

#include <sys/stat.h>

#include <csignal>
#include <iostream>
#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/flags/usage_config.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "common/daemon.h"
#include "common/log.h"
#include "common/process.h"
#include "server/api/services.h"
#include "server/config.h"
#include "server/daemon.h"
#include "server/offline_verify.h"

ABSL_FLAG(std::string, config, "", "path of the configuration, a ServerConfig as text proto");
ABSL_FLAG(bool, check_config, false,
          "only read and check the configuration: 0 if it is good, 2 if not, with all problems");
ABSL_FLAG(bool, accept_data_loss, false,
          "start although acknowledged events are missing; the log of events records it, and ids "
          "are not given again");
ABSL_FLAG(bool, verify, false,
          "only look for damage in the data directory of a daemon that does not run");
ABSL_FLAG(bool, json, false, "with --verify: a JSON object a line");
ABSL_FLAG(int32_t, end_with, 0,
          "end when the process of this number does, which has started this one; 0: go on");

namespace assay {
namespace {

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;  // the configuration is wrong: restarting does not help

int Verify(const v1::ServerConfig& config) {
  const absl::StatusOr<int64_t> fault_count =
      VerifyOffline(config, absl::GetFlag(FLAGS_json), std::cout);
  if (!fault_count.ok()) {
    std::cerr << fault_count.status().message() << "\n";
    return kExitUsage;
  }
  return *fault_count == 0 ? 0 : kExitFailure;
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
  if (absl::GetFlag(FLAGS_config).empty()) {
    std::cerr << "give the configuration: assayd --config=<file>; assay admin init writes one\n";
    return kExitUsage;
  }
  // Also what libraries make, and whoever started us may have any.
  umask(S_IRWXG | S_IRWXO);
  const sigset_t signals = BlockEndSignals();
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
  if (absl::GetFlag(FLAGS_verify)) return Verify(*config);
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
