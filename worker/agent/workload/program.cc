#include "worker/agent/workload/program.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"

#include "common/exit_code.h"
#include "common/file.h"
#include "common/json_document.h"
#include "common/log.h"
#include "common/program_contract.h"
#include "common/sha256.h"
#include "common/source/source_archive.h"
#include "common/status.h"
#include "worker/agent/workload/collected.h"
#include "worker/agent/workload/cores.h"
#include "worker/agent/workload/launcher.h"

namespace assay::agent {
namespace {

using Variables = std::map<std::string, std::string>;

constexpr char kLauncherOutput[] = "launcher.out";
constexpr char kPmixFolder[] = "PMIX_SERVER_TMPDIR";
constexpr size_t kLastWordsMax = 300;
constexpr int64_t kPrintedBytesMax = 64 << 20;  // of a process, to be kept
// What of the operator's trainer_environment says which devices of the node are this worker's.
constexpr const char* kDeviceVariables[] = {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
                                            "NVIDIA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
                                            "ZE_AFFINITY_MASK"};

// The last line of a file, as the end of a sentence; empty if there is none.
std::string LastWords(const std::string& path) {
  const std::string text = ReadFile(path, kSmallFileBytesMax).value_or("");
  const absl::string_view lines = absl::StripTrailingAsciiWhitespace(text);
  if (lines.empty()) return "";
  const size_t begin = lines.rfind('\n');
  return absl::StrCat(
      ": ", lines.substr(begin == absl::string_view::npos ? 0 : begin + 1, kLastWordsMax));
}

std::string WithoutPrefix(absl::string_view name) {
  return std::string(name.substr(name.find('/') + 1));
}

std::string NumberText(double value) {
  return nlohmann::json(value).dump();
}

// ${ASSAY_...} replaced; one that the program does not have stays as it is.
std::string Replaced(const std::string& argument, const Variables& variables) {
  const std::optional<std::vector<std::string>> parts = SplitAtVariables(argument);
  if (!parts.has_value()) return argument;
  std::string text = parts->front();
  for (size_t i = 1; i + 1 < parts->size(); i += 2) {
    const auto found = variables.find((*parts)[i]);
    absl::StrAppend(&text,
                    found == variables.end() ? absl::StrCat("${", (*parts)[i], "}") : found->second,
                    (*parts)[i + 1]);
  }
  return text;
}

class Program final : public Workload {
 public:
  Program(v1::RunSpec spec, RunDirectory directory)
      : spec_(std::move(spec)), directory_(std::move(directory)) {}

  absl::Status Prepare() const override {
    for (const std::string& path : {OutputPath(), HomePath(), TemporaryPath()})
      RETURN_IF_ERROR(MakeDirectories(path, kPrivateDirectory));
    if (!spec_.command().has_source()) return absl::OkStatus();
    const std::string archive = directory_.SourcePath();
    ASSIGN_OR_RETURN(const std::string sha256, Sha256HexOfFile(archive));
    if (sha256 != spec_.command().source().sha256())
      return absl::DataLossError(absl::StrCat(archive, " has not the digest of the run's source"));
    return UnpackSource(archive, directory_.CodePath());
  }

  // One that is found by PATH, or lies in an image, is looked for when it is started.
  absl::Status Check(const v1::WorkerConfig& worker) const override {
    if (HasLauncher()) RETURN_IF_ERROR(CheckLauncher(spec_, worker));
    const RankCommand first = ProcessCommand(0, worker, {}, {});
    const std::string& program = first.argv.front();
    const bool is_elsewhere = Image() != nullptr && !absl::StartsWith(program, directory_.path());
    if (is_elsewhere || !absl::StrContains(program, '/') || access(program.c_str(), X_OK) == 0)
      return absl::OkStatus();
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot start ", program));
  }

  std::vector<RankCommand> Commands(const v1::WorkerConfig& worker,
                                    const StartContext& context) const override {
    std::vector<RankCommand> commands;
    if (HasLauncher())
      commands.push_back(
          LauncherCommand(spec_, context, Own("launcher_hosts.txt"), LauncherOutputPath()));
    for (int local_rank = 0; local_rank < process_count() && EntrantCount() == 0; ++local_rank)
      commands.push_back(ProcessCommand(local_rank, worker, context, {}));
    return commands;
  }

  int EntrantCount() const override {
    return IsSiteLauncher(spec_.command().launcher()) ? spec_.ranks_per_node() : 0;
  }

  absl::StatusOr<RankCommand> CommandOf(const Entrant& entrant, const v1::WorkerConfig& worker,
                                        const StartContext& context) const override {
    const int local_rank = entrant.rank - RankOf(0);
    if (local_rank < 0 || local_rank >= EntrantCount())
      return absl::InvalidArgumentError(absl::StrCat("rank ", entrant.rank, " is none of node ",
                                                     spec_.node_rank(), ", which has ", RankOf(0),
                                                     " to ", RankOf(spec_.ranks_per_node() - 1)));
    return ProcessCommand(local_rank, worker, context, entrant.environment);
  }

  // 128 + n: of a signal. The codes of others' programs are not ours.
  StepExit Read(const RankExit& exit) const override {
    std::string where = absl::StrCat(" on node ", spec_.node_rank());
    if (exit.rank == kLauncherRank)
      return {static_cast<int>(ExitCode::kCommLost),
              absl::StrCat(spec_.command().launcher(), " ended with code ", exit.code, where,
                           LastWords(LauncherOutputPath()))};
    if (is_per_rank() && spec_.ranks_per_node() > 1)
      absl::StrAppend(&where, " (rank ", exit.rank, ")");
    if (exit.code >= kSignalBase)
      return {exit.code, absl::StrCat("the program was ", DescribeSignal(exit.code), where)};
    return {static_cast<int>(ExitCode::kProgram),
            absl::StrCat("the program ended with code ", exit.code, where)};
  }

  std::vector<ArtifactFile> Collected() const override {
    std::vector<ArtifactFile> files = CollectOutput(
        OutputPath(), {spec_.command().collect().begin(), spec_.command().collect().end()},
        spec_.node_rank());
    for (int local_rank = 0; local_rank < process_count(); ++local_rank) {
      const std::string path = ProcessOutputPath(local_rank);
      const absl::Status cut = CutMiddle(path, kPrintedBytesMax);
      if (!cut.ok()) LOG(WARNING) << cut;
      files.push_back({ProcessOutputName(local_rank), path});
    }
    if (HasLauncher()) files.push_back({kLauncherOutput, LauncherOutputPath()});
    if (!HasResultForLog())
      files.push_back({absl::StrCat("log_", spec_.node_rank(), ".txt"), LogPath()});
    return files;
  }

  std::string LoggingOutputPath() const override {
    return IsLogPrinted() && spec_.node_rank() == 0 ? ProcessOutputPath(0) : "";
  }

  const v1::ImageFile* Image() const override {
    return spec_.command().has_image() ? &spec_.command().image() : nullptr;
  }

  std::optional<Sight> Sees(const v1::WorkerConfig& worker) const override {
    Sight sight{.readable = {spec_.dataset().path()},
                .writable = {directory_.RanksPath()},
                .temporary_directory = TemporaryPath()};
    if (spec_.command().has_source()) sight.readable.push_back(directory_.CodePath());
    if (HasResultForLog()) sight.writable.push_back(LogPath());
    if (spec_.dataset().is_staged())
      sight.writable.push_back(directory_.StagePath(worker.stage_directory()));
    return sight;
  }

  std::optional<absl::Duration> StopGrace() const override {
    return absl::Seconds(std::max(spec_.command().stop_grace_s(), 1));
  }

 private:
  bool is_per_rank() const { return spec_.command().launcher() != kPerNode; }
  int process_count() const { return is_per_rank() ? spec_.ranks_per_node() : 1; }
  int RankOf(int local_rank) const {
    return spec_.node_rank() * spec_.ranks_per_node() + local_rank;
  }
  std::string Own(absl::string_view name) const { return JoinPath(directory_.RanksPath(), name); }
  std::string OutputPath() const { return Own("output"); }
  std::string HomePath() const { return Own("home"); }
  std::string TemporaryPath() const { return Own("tmp"); }
  std::string HyperparametersPath() const { return Own("hyperparameters.json"); }
  std::string HostFilePath() const { return Own("hosts.txt"); }
  bool IsLogPrinted() const { return spec_.command().log() == kLogIsOutput; }
  bool HasResultForLog() const { return spec_.node_rank() == 0 && !IsLogPrinted(); }
  // Rank 0's is the run's log; what other nodes log, or what is logged though it should be printed,
  // is kept and not judged.
  std::string LogPath() const {
    return HasResultForLog() ? directory_.ResultPath(spec_.run_number()) : Own("log.txt");
  }
  std::string ProcessOutputName(int local_rank) const {
    return is_per_rank() ? absl::StrCat("program_", RankOf(local_rank), ".out")
                         : absl::StrCat("program_node_", spec_.node_rank(), ".out");
  }
  std::string ProcessOutputPath(int local_rank) const {
    return directory_.Path(ProcessOutputName(local_rank));
  }

  // Node 0 starts it.
  bool HasLauncher() const { return EntrantCount() > 0 && spec_.node_rank() == 0; }
  std::string LauncherOutputPath() const { return directory_.Path(kLauncherOutput); }

  // `told`: what its launcher has told it, "NAME=value".
  RankCommand ProcessCommand(int local_rank, const v1::WorkerConfig& worker,
                             const StartContext& context,
                             const std::vector<std::string>& told) const {
    Variables variables = SharedVariables(worker, context);
    if (is_per_rank()) AddRank(local_rank, &variables);
    RankCommand command{.rank = RankOf(local_rank),
                        .working_directory = OutputPath(),
                        .output_path = ProcessOutputPath(local_rank),
                        .cores = CoresOfRank(worker, local_rank, process_count()),
                        .is_environment_whole = true};
    for (const std::string& argument : spec_.command().command())
      command.argv.push_back(Replaced(argument, variables));
    AddTold(told, &variables);
    // Whoever is first inside finds a sandbox with the folder by which its launcher talks to it.
    if (const auto found = variables.find(kPmixFolder);
        found != variables.end() && FileExists(found->second))
      command.writable.push_back(found->second);
    for (const auto& [name, value] : spec_.command().env())
      variables[name] = value;
    for (const auto& [name, value] : variables)
      command.environment.push_back(absl::StrCat(name, "=", value));
    if (local_rank == 0 || EntrantCount() > 0)
      command.inputs = {{HyperparametersPath(), HyperparametersJson()},
                        {HostFilePath(), absl::StrCat(absl::StrJoin(spec_.hosts(), "\n"), "\n")}};
    return command;
  }

  static void AddTold(const std::vector<std::string>& told, Variables* variables) {
    for (const std::string& variable : told) {
      const size_t end = variable.find('=');
      if (end != std::string::npos && IsOfLauncher(variable))
        (*variables)[variable.substr(0, end)] = variable.substr(end + 1);
    }
  }

  std::string HyperparametersJson() const {
    nlohmann::json json = nlohmann::json::object();
    for (const v1::Hyperparameter& parameter : spec_.hyperparameters())
      json[parameter.key()] = ParseJsonDocument<nlohmann::json>(parameter.json_value());
    return absl::StrCat(json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace), "\n");
  }

  Variables SharedVariables(const v1::WorkerConfig& worker, const StartContext& context) const {
    Variables variables = IdentityVariables();
    AddData(worker, &variables);
    AddGang(&variables);
    variables["ASSAY_DEADLINE_UNIX_MS"] = absl::StrCat(context.deadline_unix_ms);
    variables["PATH"] = kDefaultPath;
    variables["HOME"] = HomePath();
    variables["TMPDIR"] = TemporaryPath();
    variables["PYTHONUNBUFFERED"] = absl::StrCat(1);
    variables["OMP_NUM_THREADS"] = absl::StrCat(ThreadsPerRank(worker, process_count()));
    for (const char* const name : kDeviceVariables) {
      const auto found = worker.trainer_environment().find(name);
      if (found != worker.trainer_environment().end()) variables[name] = found->second;
    }
    return variables;
  }

  Variables IdentityVariables() const {
    return {{"ASSAY_CONTRACT", absl::StrCat(kProgramContract)},
            {"ASSAY_RUN", WithoutPrefix(spec_.run())},
            {"ASSAY_SUBMISSION", WithoutPrefix(spec_.submission())},
            {"ASSAY_RUN_NUMBER", absl::StrCat(spec_.run_number())},
            {"ASSAY_ROUND", spec_.round()},
            {"ASSAY_BENCHMARK", spec_.benchmark()},
            {"ASSAY_DIVISION", spec_.division()},
            {"ASSAY_ORGANIZATION", spec_.organization()},
            {"ASSAY_SYSTEM", spec_.system()},
            {"ASSAY_STATUS", spec_.status()},
            {"ASSAY_SEED", absl::StrCat(spec_.seed())},
            {"ASSAY_QUALITY_KEY", spec_.quality_key()},
            {"ASSAY_QUALITY_TARGET", NumberText(spec_.quality_target())},
            {"ASSAY_EPOCHS_MAX", absl::StrCat(spec_.epoch_count_max())},
            {"ASSAY_HYPERPARAMETERS", HyperparametersPath()}};
  }

  void AddData(const v1::WorkerConfig& worker, Variables* variables) const {
    const v1::DatasetSpec& dataset = spec_.dataset();
    (*variables)["ASSAY_DATASET"] = dataset.path();
    (*variables)["ASSAY_DATASET_DIGEST"] = dataset.digest();
    (*variables)["ASSAY_TRAIN_SAMPLES"] = absl::StrCat(dataset.train_sample_count());
    (*variables)["ASSAY_EVAL_SAMPLES"] = absl::StrCat(dataset.eval_sample_count());
    (*variables)["ASSAY_STAGING"] = dataset.is_staged() ? "node" : "none";
    (*variables)["ASSAY_STAGE"] =
        dataset.is_staged() ? directory_.StagePath(worker.stage_directory()) : "";
    (*variables)["ASSAY_IS_STAGING_TIMED"] = absl::StrCat(spec_.is_staging_timed() ? 1 : 0);
    (*variables)["ASSAY_LOG"] = LogPath();
    (*variables)["ASSAY_OUTPUT"] = OutputPath();
    (*variables)["ASSAY_CODE"] = spec_.command().has_source() ? directory_.CodePath() : "";
  }

  void AddGang(Variables* variables) const {
    const std::string world = absl::StrCat(spec_.node_count() * spec_.ranks_per_node());
    const std::string master = spec_.hosts().empty() ? "127.0.0.1" : spec_.hosts(0);
    const std::string port = absl::StrCat(spec_.program_port());
    (*variables)["ASSAY_NODE_RANK"] = absl::StrCat(spec_.node_rank());
    (*variables)["ASSAY_NODE_COUNT"] = absl::StrCat(spec_.node_count());
    (*variables)["ASSAY_RANKS_PER_NODE"] = absl::StrCat(spec_.ranks_per_node());
    (*variables)["ASSAY_WORLD_SIZE"] = world;
    (*variables)["ASSAY_HOSTS"] = absl::StrJoin(spec_.hosts(), ",");
    (*variables)["ASSAY_HOSTFILE"] = HostFilePath();
    (*variables)["ASSAY_MASTER_ADDR"] = master;
    (*variables)["ASSAY_MASTER_PORT"] = port;
    (*variables)["MASTER_ADDR"] = master;
    (*variables)["MASTER_PORT"] = port;
  }

  void AddRank(int local_rank, Variables* variables) const {
    (*variables)["ASSAY_RANK"] = absl::StrCat(RankOf(local_rank));
    (*variables)["ASSAY_LOCAL_RANK"] = absl::StrCat(local_rank);
    (*variables)["RANK"] = absl::StrCat(RankOf(local_rank));
    (*variables)["LOCAL_RANK"] = absl::StrCat(local_rank);
    (*variables)["WORLD_SIZE"] = (*variables)["ASSAY_WORLD_SIZE"];
  }

  const v1::RunSpec spec_;
  const RunDirectory directory_;
};

}  // namespace

std::unique_ptr<const Workload> MakeProgram(const v1::RunSpec& spec,
                                            const RunDirectory& directory) {
  return std::make_unique<Program>(spec, directory);
}

}  // namespace assay::agent
