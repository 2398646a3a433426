#include "server/config.h"

#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"

#include "common/file.h"
#include "common/status.h"
#include "server/launch/registry.h"
#include "server/metrics_config.h"
#include "server/notify_config.h"
#include "server/preflight_config.h"
#include "server/runtime/rule_book.h"
#include "server/slurm_config.h"

namespace assay {
namespace {

constexpr size_t kSwitchNameBytesMax = 128;
constexpr int32_t kRetentionDaysMax = 36'500;
constexpr int64_t kDurationMaxMs = 30LL * 24 * 3600 * 1000;

using Problems = std::vector<std::string>;

// Collects what does not parse.
class SyntaxProblems final : public google::protobuf::io::ErrorCollector {
 public:
  SyntaxProblems(std::string path, Problems* problems)
      : path_(std::move(path)), problems_(problems) {}
  void AddError(int line, int column, const std::string& message) override {
    problems_->push_back(absl::StrCat(path_, ":", line + 1, ":", column + 1, ": ", message));
  }

 private:
  const std::string path_;
  Problems* const problems_;
};

void MakeAbsolute(const std::string& folder, std::string* path) {
  if (!path->empty() && (*path)[0] != '/') *path = JoinPath(folder, *path);
}

void MakePathsAbsolute(const std::string& folder, v1::ServerConfig* config) {
  MakeAbsolute(folder, config->mutable_data_directory());
  MakeAbsolute(folder, config->mutable_unix_socket_path());
  for (std::string& path : *config->mutable_round_paths())
    MakeAbsolute(folder, &path);
  if (config->has_launcher())
    MakeAbsolute(folder, config->mutable_launcher()->mutable_worker_program());
  if (config->launcher().has_slurm())
    MakeAbsolute(folder, config->mutable_launcher()->mutable_slurm()->mutable_shared_directory());
  if (!config->has_tls()) return;
  MakeAbsolute(folder, config->mutable_tls()->mutable_ca_certificate_path());
  MakeAbsolute(folder, config->mutable_tls()->mutable_ca_key_path());
  MakeAbsolute(folder, config->mutable_tls()->mutable_certificate_path());
  MakeAbsolute(folder, config->mutable_tls()->mutable_key_path());
}

void Note(const absl::Status& status, absl::string_view field, Problems* problems) {
  if (!status.ok()) problems->push_back(absl::StrCat(field, ": ", status.message()));
}

// The file's content, or nothing if no path is given.
absl::StatusOr<std::string> ReadOptional(const std::string& path) {
  if (path.empty()) return std::string();
  return ReadFile(path);
}

// False if it is not empty, and not host:port.
bool CheckAddress(absl::string_view field, const std::string& address, absl::string_view example,
                  Problems* problems) {
  if (address.empty()) return true;
  const size_t colon = address.rfind(':');
  int port = -1;
  if (colon != std::string::npos && colon > 0 &&
      absl::SimpleAtoi(address.substr(colon + 1), &port) && port >= 0 && port <= 65535)
    return true;
  problems->push_back(absl::StrCat(field, ": \"", address, "\" is not host:port, like ", example));
  return false;
}

void CheckMetrics(const v1::ServerConfig& config, Problems* problems) {
  if (!CheckAddress("metrics_address", config.metrics_address(), "127.0.0.1:9464", problems))
    return;
  for (std::string& problem : MetricsProblems(config))
    problems->push_back(std::move(problem));
}

// False if a file is named that cannot be read; each is a problem of its own.
bool CanReadTlsFiles(const v1::TlsConfig& tls, Problems* problems) {
  const size_t count = problems->size();
  const std::pair<const char*, const std::string&> files[] = {
      {"tls.ca_certificate_path", tls.ca_certificate_path()},
      {"tls.ca_key_path", tls.ca_key_path()},
      {"tls.certificate_path", tls.certificate_path()},
      {"tls.key_path", tls.key_path()}};
  for (const auto& [field, path] : files)
    Note(ReadOptional(path).status(), field, problems);
  return problems->size() == count;
}

void CheckTls(const v1::ServerConfig& config, Problems* problems) {
  if (!CanReadTlsFiles(config.tls(), problems)) return;
  const absl::StatusOr<api::ListenOptions> listen = ListenOptionsOf(config);
  if (!listen.ok()) return Note(listen.status(), "tls", problems);
  Note(api::CheckListenOptions(*listen), "listen_address", problems);
  if (listen->ca_pem.empty()) return;
  if (!listen->server_certificate.certificate_pem.empty()) {
    Note(CheckSignedBy(listen->server_certificate.certificate_pem, listen->ca_pem),
         "tls.certificate_path", problems);
  }
  if (!config.tls().ca_key_path().empty()) Note(CaOf(config).status(), "tls", problems);
}

void CheckSlurm(const v1::ServerConfig& config, Problems* problems) {
  for (const std::string& problem : SlurmProblems(config))
    problems->push_back(absl::StrCat("launcher.", problem));
  if (config.listen_address().empty() || config.tls().ca_key_path().empty()) {
    problems->push_back(
        "launcher: kind \"slurm\" needs listen_address and tls.ca_key_path, by which its agents "
        "enrol; run assay admin init");
  }
}

void CheckLauncher(const v1::ServerConfig& config, Problems* problems) {
  const v1::LauncherConfig& launcher = config.launcher();
  Note(launch::CheckLauncherKind(launcher.kind()), "launcher.kind", problems);
  if (launcher.kind() == "slurm") CheckSlurm(config, problems);
  if (launcher.kind() != "local") return;
  if (launcher.worker_count() < 1)
    problems->push_back("launcher.worker_count: is 0: say how many agents this host shall have");
  if (launcher.cores_per_worker() < 0)
    problems->push_back("launcher.cores_per_worker: is negative: give 0 to share evenly");
  if (config.listen_address().empty() || config.tls().ca_key_path().empty()) {
    problems->push_back(
        "launcher: kind \"local\" needs listen_address and tls.ca_key_path, by which its agents "
        "enrol; run assay admin init");
  }
}

void CheckScheduler(const v1::SchedulerConfig& scheduler, Problems* problems) {
  const std::pair<const char*, int64_t> durations[] = {
      {"scheduler.suspect_after_ms", scheduler.suspect_after_ms()},
      {"scheduler.lost_after_ms", scheduler.lost_after_ms()}};
  for (const auto& [field, value] : durations) {
    if (value < 0 || value > kDurationMaxMs)
      problems->push_back(absl::StrCat(field, ": is ", value, ": give 0 to ", kDurationMaxMs));
  }
  if (scheduler.suspect_after_ms() > 0 && scheduler.lost_after_ms() > 0 &&
      scheduler.suspect_after_ms() > scheduler.lost_after_ms())
    problems->push_back("scheduler.suspect_after_ms: is longer than lost_after_ms");
  if (scheduler.organization_run_limit() < 0)
    problems->push_back("scheduler.organization_run_limit: is negative: give 0 for no limit");
  for (const auto& [organization, limit] : scheduler.organization_run_limits()) {
    if (limit < 0) {
      problems->push_back(absl::StrCat("scheduler.organization_run_limits[\"", organization,
                                       "\"]: is negative: give 0 for no limit"));
    }
  }
}

void CheckRetention(const v1::RetentionConfig& retention, Problems* problems) {
  const std::pair<const char*, int32_t> days[] = {
      {"retention.telemetry_days", retention.telemetry_days()},
      {"retention.progress_days", retention.progress_days()}};
  for (const auto& [field, value] : days)
    if (value < 0 || value > kRetentionDaysMax)
      problems->push_back(absl::StrCat(field, ": is ", value, ": give 1 to ", kRetentionDaysMax,
                                       ", or 0 to keep it for ever"));
}

void CheckNotify(const v1::ServerConfig& config, Problems* problems) {
  for (std::string& problem : NotifyProblems(config))
    problems->push_back(std::move(problem));
}

void CheckPreflight(const v1::ServerConfig& config, Problems* problems) {
  const auto add = [problems](const v1::PreflightConfig& preflight, const std::string& field) {
    for (std::string& problem : PreflightProblems(preflight, field))
      problems->push_back(std::move(problem));
  };
  add(config.preflight(), "preflight");
  for (const v1::SlurmProfile& profile : config.launcher().slurm().profiles())
    add(profile.preflight(),
        absl::StrCat("launcher.slurm.profiles ", profile.name(), ".preflight"));
}

void CheckLocalUsers(const v1::ServerConfig& config, Problems* problems) {
  for (const v1::LocalUser& user : config.local_users()) {
    const std::string field = absl::StrCat("local_users { uid: ", user.uid(), " }");
    const std::optional<auth::Role> role = auth::ParseRole(user.role());
    if (user.uid() < 0 || user.uid() > std::numeric_limits<uid_t>::max())
      problems->push_back(absl::StrCat(field, ": no such uid"));
    if (user.principal().empty())
      problems->push_back(absl::StrCat(field, ": principal is empty: say who this is"));
    if (!role.has_value() || *role == auth::Role::kWorker) {
      problems->push_back(absl::StrCat(field, ": role is \"", user.role(),
                                       "\": choose public, submitter, reviewer or operator"));
    }
    if (role == auth::Role::kSubmitter && user.organization().empty())
      problems->push_back(absl::StrCat(field, ": organization is empty: a submitter has one"));
  }
}

void CheckWebUrl(const std::string& url, Problems* problems) {
  if (url.empty() || absl::StartsWith(url, "https://")) return;
  problems->push_back(absl::StrCat("web_url: \"", url, "\" does not begin with https://"));
}

void CheckSwitches(const v1::ServerConfig& config, Problems* problems) {
  constexpr int kSwitchesMax = 1024;
  constexpr double kWattsMax = 1'000'000;
  std::set<std::string> names;
  if (config.switches_size() > kSwitchesMax)
    problems->push_back(absl::StrCat("switches: are ", config.switches_size(),
                                     ": a run counts at most ", kSwitchesMax));
  for (const v1::SwitchPower& one : config.switches()) {
    const std::string field = absl::StrCat("switches { name: \"", one.name(), "\" }");
    if (one.name().empty() || one.name().size() > kSwitchNameBytesMax)
      problems->push_back(absl::StrCat(field, ": name has not 1 to ", kSwitchNameBytesMax,
                                       " bytes: say which switch this is"));
    if (!names.insert(one.name()).second)
      problems->push_back(absl::StrCat(field, ": is there twice"));
    if (!(one.watts() > 0 && one.watts() <= kWattsMax))
      problems->push_back(absl::StrCat(field, ": watts is ", one.watts(),
                                       ": give its maximum rating, above 0 and at most ",
                                       kWattsMax));
  }
}

absl::Status Validate(const v1::ServerConfig& config, const std::string& path) {
  Problems problems;
  if (config.data_directory().empty())
    problems.push_back("data_directory: is empty: name a folder on a local disk");
  CheckAddress("listen_address", config.listen_address(), "127.0.0.1:7443", &problems);
  CheckMetrics(config, &problems);
  CheckTls(config, &problems);
  CheckLauncher(config, &problems);
  CheckScheduler(config.scheduler(), &problems);
  CheckPreflight(config, &problems);
  CheckRetention(config.retention(), &problems);
  CheckNotify(config, &problems);
  CheckLocalUsers(config, &problems);
  CheckSwitches(config, &problems);
  CheckWebUrl(config.web_url(), &problems);
  if (config.queue_limit() < 0)
    problems.push_back("queue_limit: is negative: give 0 for the default");
  Note(runtime::LoadRuleBook({config.round_paths().begin(), config.round_paths().end()}).status(),
       "round_paths", &problems);
  if (problems.empty()) return absl::OkStatus();
  for (std::string& problem : problems)
    problem = absl::StrCat(path, ": ", problem);
  return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
}

}  // namespace

absl::StatusOr<v1::ServerConfig> LoadServerConfig(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return ParseServerConfig(text, path);
}

absl::StatusOr<v1::ServerConfig> ParseServerConfig(const std::string& text,
                                                   const std::string& path) {
  Problems problems;
  SyntaxProblems collector(path, &problems);
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&collector);
  v1::ServerConfig config;
  if (!parser.ParseFromString(text, &config))
    return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
  const size_t slash = path.rfind('/');
  MakePathsAbsolute(slash == std::string::npos ? "." : path.substr(0, slash + 1), &config);
  RETURN_IF_ERROR(Validate(config, path));
  return config;
}

std::vector<std::string> ServerConfigWarnings(const v1::ServerConfig& config) {
  std::vector<std::string> warnings = NotifyWarnings(config);
  if (config.launcher().kind() != "slurm") return warnings;
  for (std::string& warning : SlurmWarnings(config.launcher().slurm()))
    warnings.push_back(std::move(warning));
  return warnings;
}

absl::StatusOr<api::ListenOptions> ListenOptionsOf(const v1::ServerConfig& config) {
  api::ListenOptions options;
  options.tcp_address = config.listen_address();
  options.unix_socket_path = config.unix_socket_path();
  options.is_socket_open_to_all = config.local_users_size() > 0;
  ASSIGN_OR_RETURN(options.ca_pem, ReadOptional(config.tls().ca_certificate_path()));
  ASSIGN_OR_RETURN(options.server_certificate.certificate_pem,
                   ReadOptional(config.tls().certificate_path()));
  ASSIGN_OR_RETURN(options.server_certificate.key_pem, ReadOptional(config.tls().key_path()));
  return options;
}

absl::StatusOr<CertificateAndKey> CaOf(const v1::ServerConfig& config) {
  CertificateAndKey ca;
  ASSIGN_OR_RETURN(ca.certificate_pem, ReadOptional(config.tls().ca_certificate_path()));
  ASSIGN_OR_RETURN(ca.key_pem, ReadOptional(config.tls().ca_key_path()));
  if (!ca.key_pem.empty()) RETURN_IF_ERROR(Annotate(CheckPair(ca), "ca_key_path"));
  return ca;
}

std::vector<auth::LocalUser> LocalUsersOf(const v1::ServerConfig& config) {
  std::vector<auth::LocalUser> users;
  for (const v1::LocalUser& user : config.local_users()) {
    users.push_back({.uid = static_cast<uid_t>(user.uid()),
                     .identity = {.principal = user.principal(),
                                  .role = *auth::ParseRole(user.role()),
                                  .organization = user.organization()}});
  }
  return users;
}

core::Policy PolicyOf(const v1::ServerConfig& config) {
  const v1::SchedulerConfig& scheduler = config.scheduler();
  core::Policy policy;
  if (scheduler.suspect_after_ms() > 0)
    policy.suspect_after_us = scheduler.suspect_after_ms() * 1000;
  if (scheduler.lost_after_ms() > 0) policy.lost_after_us = scheduler.lost_after_ms() * 1000;
  policy.organization_run_limit = scheduler.organization_run_limit();
  policy.organization_run_limits.insert(scheduler.organization_run_limits().begin(),
                                        scheduler.organization_run_limits().end());
  if (config.has_preflight()) policy.preflight = PreflightPolicyOf(config.preflight());
  for (const v1::SlurmProfile& profile : config.launcher().slurm().profiles())
    if (profile.has_preflight())
      policy.profile_preflights[profile.name()] = PreflightPolicyOf(profile.preflight());
  return policy;
}

runtime::RuntimeOptions RuntimeOptionsOf(const v1::ServerConfig& config) {
  runtime::RuntimeOptions options;
  options.data_directory = config.data_directory();
  options.round_paths = {config.round_paths().begin(), config.round_paths().end()};
  options.policy = PolicyOf(config);
  for (const v1::SwitchPower& one : config.switches())
    options.switches.push_back({.name = one.name(), .watts = one.watts()});
  if (config.queue_limit() > 0)
    options.core_thread.queue_limit = static_cast<size_t>(config.queue_limit());
  options.is_compressing = !config.retention().keep_uncompressed();
  return options;
}

}  // namespace assay
