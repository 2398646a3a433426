#include "tests/e2e/site.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"

#include "common/file.h"
#include "common/log.h"
#include "tests/support/status_matchers.h"
#include "tests/support/write_file.h"

namespace assay::testing {
namespace {

constexpr absl::Duration kPatience = absl::Minutes(10);  // of one command, on a busy host

constexpr char kRoundText[] = R"([round]
name = "e2e-small"
base = "hpc-3.0.0"
label = "Round of the end-to-end tests: not an MLPerf result"

[benchmark]
name = "cosmoflow"
runs = 3
target = 0.3

[[rule]]
id = "R-FAC-901"
key = "cube_edge"
equals = 32
hyperparameter = true
section = "e2e-small, Model"
remedy = "use cubes of 32 voxels a side"

[[rule]]
id = "R-FAC-902"
key = "base_filter_count"
equals = 4
hyperparameter = true
section = "e2e-small, Model"
remedy = "keep the 4 filters of the first convolution"
)";

// A hard link where the file system allows it.
void Install(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::error_code error;
  std::filesystem::create_hard_link(from, to, error);
  if (!error) return;
  CHECK(std::filesystem::copy_file(from, to, error))
      << "from=" << from.string() << " " << error.message();
}

std::string Content(const std::string& path) {
  return ReadFile(path).value_or("");
}

}  // namespace

std::string Outcome::Text() const {
  return absl::StrCat("exit code ", exit_code, "\n--- stdout\n", out, "--- stderr\n", err);
}

Site::Site() {
  const char* const folder = std::getenv("ASSAY_BIN_DIR");
  const std::string bin = folder == nullptr ? "build/dev/bin" : folder;
  // Of whoever runs the tests; Spawn hands down what this process has.
  for (const char* variable : {"ASSAY_SERVER", "ASSAY_SOCKET", "ASSAY_CA", "ASSAY_TOKEN",
                               "ASSAY_TOKEN_FILE", "ASSAY_OUTPUT", "ASSAY_COLOR"})
    unsetenv(variable);
  for (const char* part : {"bin", "share/assay/rounds", "home", "run", "cache"})
    CHECK_OK(MakeDirectories(Path(part)));
  std::filesystem::permissions(Path("run"), std::filesystem::perms::owner_all);
  for (const char* program :
       {"assay", "assayd", "assay-worker", "assay-web", "assay-hold", "assay-train"})
    Install(JoinPath(bin, program), Program(program));
  WriteFile(Path("share/assay/rounds/e2e-small.toml"), kRoundText);
  environment_ = {absl::StrCat("HOME=", Path("home")),
                  absl::StrCat("XDG_RUNTIME_DIR=", Path("run")),
                  absl::StrCat("XDG_CACHE_HOME=", Path("cache")),
                  absl::StrCat("XDG_CONFIG_HOME=", Path("home/.config")), "LC_ALL=C.UTF-8"};
}

std::string Site::Program(absl::string_view name) const {
  return dir_.Path(absl::StrCat("bin/", name));
}

ProcessId Site::Start(std::vector<std::string> argv, const std::string& output_path) const {
  SpawnOptions options = {.argv = std::move(argv),
                          .environment = environment_,
                          .working_directory = dir_.path(),
                          .output_path = output_path};
  const absl::StatusOr<ProcessId> process = Spawn(options);
  CHECK_OK(process.status());
  return *process;
}

Outcome Site::RunProgram(std::vector<std::string> argv) const {
  // Both streams of a child go to one file; a shell parts them.
  const TempDir streams;
  argv.insert(argv.begin(), {"/bin/sh", "-c", R"(exec "$0" "$@" 2>)" + streams.Path("err")});
  const ProcessId process = Start(std::move(argv), streams.Path("out"));
  Outcome outcome;
  const absl::StatusOr<int> code = WaitForExit(process, kPatience);
  if (code.ok()) {
    outcome.exit_code = *code;
  } else {
    EXPECT_THAT(StopGroup(process, absl::ZeroDuration()), IsOk());
  }
  outcome.out = Content(streams.Path("out"));
  outcome.err = Content(streams.Path("err"));
  return outcome;
}

Outcome Site::Assay(const std::vector<std::string>& arguments) const {
  std::vector<std::string> argv = {Program("assay")};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return RunProgram(std::move(argv));
}

Json Site::AssayJson(std::vector<std::string> arguments, int exit_code) const {
  arguments.emplace_back("--json");
  const Outcome outcome = Assay(arguments);
  EXPECT_EQ(outcome.exit_code, exit_code) << outcome.Text();
  Json json = Json::parse(outcome.out, nullptr, /*allow_exceptions=*/false);
  EXPECT_FALSE(json.is_discarded()) << outcome.Text();
  return json.is_discarded() ? Json() : json;
}

Coordinator::Coordinator(Site* site, int worker_count)
    : Coordinator(site,
                  absl::StrCat(R"(launcher { kind: "local" cores_per_worker: 1 worker_count: )",
                               worker_count, " }")) {}

Coordinator::Coordinator(Site* site, const std::string& launcher, std::string host)
    : site_(site), host_(std::move(host)), log_(site->Path("assayd.fifo")) {
  const std::string socket = site->Path("assayd.sock");
  const Outcome init = site->Assay({"admin", "init", site->Path("etc"), "--host", host_, "--port",
                                    absl::StrCat(port_.number()), "--data", site->Path("data"),
                                    "--unix-socket", socket});
  CHECK(init.exit_code == 0) << init.Text();
  // What an operator of a single machine changes.
  const std::string config = site->Path("etc/assayd.textproto");
  WriteFile(config, absl::StrReplaceAll(
                        Content(config),
                        {{R"(launcher { kind: "attach" })",
                          absl::StrReplaceAll(launcher, {{"PORT", absl::StrCat(port_.number())}})},
                         {"0.0.0.0:", absl::StrCat(host_, ":")}}));
  site->Export(absl::StrCat("ASSAY_SOCKET=", socket));
  Start();
}

Coordinator::~Coordinator() {
  if (!process_.has_value()) Start();
  // In order: it stops its agents.
  const absl::StatusOr<int> code = StopGroup(*process_, absl::Minutes(1));
  EXPECT_THAT(code, IsOkAndHolds(0));
}

void Coordinator::Start() {
  process_ = site_->Start(
      {site_->Program("assayd"), absl::StrCat("--config=", site_->Path("etc/assayd.textproto"))},
      log_.path());
  std::optional<std::string> line;
  do {
    line = log_.WaitFor(" serv");
  } while (line.has_value() && !absl::StrContains(*line, " serving tcp=") &&
           !absl::StrContains(*line, "cannot serve"));
  CHECK(line.has_value() && absl::StrContains(*line, " serving tcp=")) << line.value_or("silence");
}

void Coordinator::Kill() {
  CHECK_OK(SignalGroup(*process_, SIGKILL));
  CHECK_OK(WaitForExit(*process_, kPatience).status());
  process_.reset();
}

ProcessId Coordinator::Agent(const std::string& worker) const {
  const std::string text = Content(site_->Path(absl::StrCat("data/agents/", worker, "/agent.pid")));
  const std::vector<std::string> words =
      absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  ProcessId process;
  if (words.size() != 2 || !absl::SimpleAtoi(words[0], &process.pid) ||
      !absl::SimpleAtoi(words[1], &process.start_ticks))
    return {};
  return process;
}

Worker::Worker(const Site& site, const std::string& name, const std::string& server_address,
               const Place& place)
    : data_directory_(site.Path(absl::StrCat("nodes/", name))) {
  const Outcome token = site.Assay({"admin", "enrol", name});
  CHECK(token.exit_code == 0) << token.Text();
  CHECK_OK(MakeDirectories(data_directory_, kPrivateDirectory));
  WriteFile(JoinPath(data_directory_, "token"), token.out);
  const std::string config = JoinPath(data_directory_, "worker.conf");
  WriteFile(config, absl::StrCat("name: \"", name, "\" server_address: \"", server_address,
                                 "\" data_directory: \"", data_directory_,
                                 "/data\" ca_certificate_path: \"", site.Path("etc/ca.crt"),
                                 "\" enrolment_token_path: \"", data_directory_,
                                 "/token\" rendezvous_host: \"", place.host,
                                 "\" run_user: \"root\" "
                                 "core_count: 1 ",
                                 place.config));
  std::vector<std::string> argv = place.prefix;
  argv.push_back(site.Program("assay-worker"));
  argv.push_back(absl::StrCat("--config=", config));
  process_ = site.Start(std::move(argv), JoinPath(data_directory_, "agent.log"));
}

Worker::~Worker() {
  StopGroup(process_, absl::Seconds(30)).IgnoreError();
}

std::string SubmissionText::ToString() const {
  return absl::StrCat("round = \"", round, "\"\nbenchmark = \"cosmoflow\"\ndivision = \"closed\"\n",
                      "organization = \"Example\"\nsystem = \"this-host\"\ndataset = \"", dataset,
                      "\"\nnodes = 2\nepochs_max = ", epochs_max, "\nstatus = \"research\"\n\n",
                      "[hyperparameters]\nglobal_batch_size = ", global_batch_size,
                      "\nopt_name = \"", opt_name, "\"\n",
                      "opt_base_learning_rate = ", base_learning_rate, R"(
opt_learning_rate_warmup_epochs = 1
opt_learning_rate_warmup_factor = 4
opt_learning_rate_decay_boundary_epochs = [8]
opt_learning_rate_decay_factor = [0.25]
dropout = 0.0
opt_weight_decay = 0.0
)",
                      more);
}

std::string WriteSubmission(const Site& site, const std::string& name, const SubmissionText& text) {
  const std::string path = site.Path(name);
  WriteFile(path, text.ToString());
  return path;
}

void ProvideBeacons(const Site& site, const std::string& id, int train_samples, int eval_samples) {
  const std::string folder = site.Path(absl::StrCat("datasets/", id));
  const Outcome made =
      site.Assay({"dataset", "generate", folder, "--mode", "beacon", "--train",
                  absl::StrCat(train_samples), "--eval", absl::StrCat(eval_samples)});
  ASSERT_EQ(made.exit_code, 0) << made.Text();
  const Outcome added = site.Assay({"dataset", "add", id, folder});
  ASSERT_EQ(added.exit_code, 0) << added.Text();
}

Json ResultArtifact(const Json& run) {
  const auto artifacts = run.find("artifacts");
  if (artifacts == run.end()) return {};
  for (const Json& artifact : *artifacts)
    if (absl::StartsWith(artifact["file"].get<std::string>(), "result_")) return artifact;
  return {};
}

int64_t ExpectNoGaps(const Site& site, const std::string& run, int node_rank) {
  const Outcome events = site.Assay(
      {"run", "events", run, "--node-rank", absl::StrCat(node_rank), "--output", "ndjson"});
  EXPECT_EQ(events.exit_code, 0) << events.err;
  int64_t expected = 0;
  for (const std::string& line :
       std::vector<std::string>(absl::StrSplit(events.out, '\n', absl::SkipEmpty())))
    EXPECT_EQ(Json::parse(line)["seq"], ++expected);
  return expected;
}

std::string OraclePath(absl::string_view name) {
  const char* const folder = std::getenv("ASSAY_ORACLE_DIR");
  const std::string path = JoinPath(folder == nullptr ? "../shared/data" : folder, name);
  if (FileExists(path)) return std::filesystem::absolute(path);
  if (std::getenv("CI") != nullptr)
    ADD_FAILURE() << path << " is missing: set ASSAY_ORACLE_DIR to the folder of stored results";
  return "";
}

}  // namespace assay::testing
