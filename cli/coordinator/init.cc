#include "cli/coordinator/init.h"

#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <optional>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

#include "cli/command/context.h"
#include "cli/command/share.h"
#include "common/file.h"
#include "common/pki.h"
#include "common/status.h"

namespace assay::cli {
namespace {

constexpr int kOwnerOnly = 0600;
constexpr int kOwnerOnlyDirectory = 0700;
constexpr int kGroupReads = 0640;
constexpr int kGroupReadsDirectory = 0750;
constexpr char kDaemonGroup[] = "assay";  // of deploy/systemd/assayd.service
constexpr absl::Duration kCaLifetime = absl::Hours(24 * 3650);

std::string Quoted(absl::string_view text) {
  return absl::StrCat("\"", absl::CEscape(text), "\"");
}

std::string ServerConfigText(const InitOptions& options) {
  const auto path = [&](absl::string_view name) {
    return Quoted(JoinPath(options.directory, name));
  };
  std::string text = absl::StrCat(
      "# proto: assay.v1.ServerConfig. Check it with: assayd --config FILE --check_config\n",
      "data_directory: ", Quoted(options.data_directory), "\n",
      "listen_address: ", Quoted(options.listen_address), "\n",
      "unix_socket_path: ", Quoted(options.unix_socket_path), "\n", "tls {\n",
      "  ca_certificate_path: ", path("ca.crt"), "\n", "  ca_key_path: ", path("ca.key"),
      "  # signs enrolments\n", "  certificate_path: ", path("server.crt"), "\n",
      "  key_path: ", path("server.key"), "\n", "}\n");
  for (const std::string& round : options.round_paths)
    absl::StrAppend(&text, "round_paths: ", Quoted(round), "\n");
  if (!options.web_url.empty()) absl::StrAppend(&text, "web_url: ", Quoted(options.web_url), "\n");
  if (options.local_worker_count == 0) return absl::StrCat(text, "launcher { kind: \"attach\" }\n");
  return absl::StrCat(
      text, "launcher {\n  kind: \"local\"\n  worker_count: ", options.local_worker_count,
      "\n  cores_per_worker: 1\n  worker_program: ", Quoted(options.worker_program), "\n}\n");
}

std::string WorkerConfigText(const InitOptions& options) {
  return absl::StrCat(
      "# proto: assay.v1.WorkerConfig. Copy it and ca.crt to each node; change the name.\n",
      "name: \"w0\"\n", "server_address: ", Quoted(options.server_address), "\n",
      "data_directory: \"/var/lib/assay-worker\"\n",
      "ca_certificate_path: ", Quoted(JoinPath(options.directory, "ca.crt")), "\n",
      "# Holds what 'assay admin enrol w0' printed; needed at the first start only.\n",
      "enrolment_token_path: \"/etc/assay/enrol.token\"\n");
}

// Nothing if there is no such group.
std::optional<gid_t> GroupNumber(const std::string& name) {
  std::vector<char> buffer(size_t{1} << 16);
  group entry = {};
  group* found = nullptr;
  if (getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 ||
      found == nullptr)
    return std::nullopt;
  return found->gr_gid;
}

// Lets the group read `path`, and nobody else but the owner.
absl::Status OpenToGroup(const std::string& path, gid_t group, int mode) {
  if (chown(path.c_str(), static_cast<uid_t>(-1), group) != 0 ||
      chmod(path.c_str(), static_cast<mode_t>(mode)) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot let the group read ", path));
  return absl::OkStatus();
}

// The daemon, which is not root, reads its keys as a member of its group.
absl::Status OpenDirectoryToGroup(const std::string& directory, gid_t group) {
  for (const char* name : {"ca.crt", "ca.key", "server.crt", "server.key", "assayd.textproto"})
    RETURN_IF_ERROR(OpenToGroup(JoinPath(directory, name), group, kGroupReads));
  return OpenToGroup(directory, group, kGroupReadsDirectory);
}

// The group that was asked for; the daemon's own if root asked for none and there is one.
std::string ChosenGroup(const Arguments& arguments) {
  if (arguments.Has("group")) return arguments.Get("group");
  return geteuid() == 0 && GroupNumber(kDaemonGroup).has_value() ? kDaemonGroup : "";
}

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "localhost";
}

absl::StatusOr<ExitStatus> RunInit(Context* context, const Arguments& arguments) {
  InitOptions options{.directory = context->env().AbsolutePath(arguments.Get("DIR"))};
  options.host_names = arguments.All("host");
  if (options.host_names.empty()) options.host_names = {HostName()};
  const std::string port = arguments.Get("port");
  options.listen_address = absl::StrCat("0.0.0.0:", port);
  options.server_address = absl::StrCat(options.host_names.front(), ":", port);
  options.data_directory = arguments.Get("data");
  options.unix_socket_path = arguments.Get("unix-socket");
  options.group = ChosenGroup(arguments);
  for (const char* local : {"localhost", "127.0.0.1"})
    options.host_names.emplace_back(local);
  options.now = context->env().clock->Wall();
  ASSIGN_OR_RETURN(options.lifetime, arguments.Duration("lifetime", options.lifetime));
  if (const auto rounds = ShareDirectory(context->env(), "rounds"); rounds.ok()) {
    ASSIGN_OR_RETURN(options.round_paths, FilesIn(*rounds, ".toml"));
  }
  RETURN_IF_ERROR(InitDirectory(options));
  context->out() << "wrote " << options.directory << ":\n"
                 << "  ca.crt              give it to submitters and nodes\n"
                 << "  ca.key              signs nodes; keep it secret ("
                 << (options.group.empty() ? "mode 0600"
                                           : absl::StrCat("the group ", options.group, " reads it"))
                 << ")\n"
                 << "  server.crt .key     the coordinator's own, valid "
                 << absl::ToInt64Hours(options.lifetime) / 24 << " days\n"
                 << "  assayd.textproto    the coordinator's configuration\n"
                 << "  worker.textproto    an agent's configuration, to copy\n";
  context->Note(absl::StrCat("next: assayd --config ", options.directory, "/assayd.textproto"));
  return ExitStatus::kDone;
}

}  // namespace

absl::Status InitDirectory(const InitOptions& options) {
  const std::optional<gid_t> group = GroupNumber(options.group);
  if (!options.group.empty() && !group.has_value()) {
    return absl::NotFoundError(absl::StrCat(
        "there is no group '", options.group,
        "': install the package assay-server, or make it with groupadd --system ", options.group));
  }
  RETURN_IF_ERROR(MakeDirectories(options.directory));
  for (const char* name :
       {"ca.crt", "ca.key", "server.crt", "server.key", "assayd.textproto", "worker.textproto"}) {
    if (FileExists(JoinPath(options.directory, name)))
      return absl::AlreadyExistsError(absl::StrCat(
          JoinPath(options.directory, name),
          " is there already; keys are never overwritten: choose another directory or move it"));
  }
  if (chmod(options.directory.c_str(), kOwnerOnlyDirectory) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot protect ", options.directory));
  ASSIGN_OR_RETURN(const CertificateAndKey ca,
                   MakeCa(absl::StrCat("assay CA of ", options.host_names.front()),
                          {options.now, std::max(kCaLifetime, options.lifetime)}));
  ASSIGN_OR_RETURN(const KeyAndCsr server, MakeKeyAndCsr(options.host_names.front()));
  ASSIGN_OR_RETURN(const std::string certificate,
                   SignCsr(ca, server.csr_pem,
                           {.common_name = options.host_names.front(),
                            .subject_names = options.host_names,
                            .kind = CertificateKind::kServer,
                            .validity = {options.now, options.lifetime}}));
  const auto path = [&](absl::string_view name) { return JoinPath(options.directory, name); };
  RETURN_IF_ERROR(WriteFileAtomic(path("ca.key"), ca.key_pem, kOwnerOnly));
  RETURN_IF_ERROR(WriteFileAtomic(path("ca.crt"), ca.certificate_pem));
  RETURN_IF_ERROR(WriteFileAtomic(path("server.key"), server.key_pem, kOwnerOnly));
  RETURN_IF_ERROR(WriteFileAtomic(path("server.crt"), certificate));
  RETURN_IF_ERROR(WriteFileAtomic(path("assayd.textproto"), ServerConfigText(options)));
  if (group.has_value()) RETURN_IF_ERROR(OpenDirectoryToGroup(options.directory, *group));
  if (options.local_worker_count > 0) return absl::OkStatus();
  return WriteFileAtomic(path("worker.textproto"), WorkerConfigText(options));
}

std::vector<Command> InitCommands() {
  using Kind = Option::Kind;
  return {{.path = "admin init",
           .summary = "make the keys and configurations of a new coordinator",
           .positionals = {{.name = "DIR",
                            .help = "as /etc/assay; made if it does not exist",
                            .completes = Completes::kDirectory}},
           .options = {{.name = "host",
                        .kind = Kind::kText,
                        .value = "NAME",
                        .help = "name or address by which it is reached; may be repeated "
                                "(default: this host's name)"},
                       {.name = "port",
                        .kind = Kind::kInteger,
                        .value = "PORT",
                        .help = "where it listens",
                        .fallback = "7443",
                        .max = 65535},
                       {.name = "data",
                        .kind = Kind::kText,
                        .value = "DIR",
                        .help = "where it keeps its database; a local disk",
                        .fallback = "/var/lib/assay"},
                       {.name = "unix-socket",
                        .kind = Kind::kText,
                        .value = "PATH",
                        .help = "for commands on its own host",
                        .fallback = "/run/assay/assayd.sock"},
                       {.name = "group",
                        .kind = Kind::kText,
                        .value = "GROUP",
                        .help = "which may read the files, keys too: the daemon's "
                                "(default: assay, if root asks and there is such a group)"},
                       {.name = "lifetime",
                        .kind = Kind::kDuration,
                        .value = "DURATION",
                        .help = "of the server's certificate (default: 365d)"}},
           .examples = {{"assay admin init /etc/assay --host bench.example.org", ""}},
           .run = RunInit}};
}

}  // namespace assay::cli
