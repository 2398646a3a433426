// Everything that can be asked of the core, with values that nobody means well: the real core and
// the real store must neither end nor disagree. Goal: no command leads to a crash, and what is
// loaded after a restart equals what was in memory. How: batches of random commands, whose texts
// and numbers are extremes or plausible names; the seed is printed and can be given by
// ASSAY_HOSTILE_SEED, the number of rounds by ASSAY_HOSTILE_COUNT.

#include <cstdlib>
#include <future>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "server/core/apply.h"
#include "server/store/codec.h"
#include "server/store/restore.h"
#include "server/store/store.h"
#include "tests/server/core/world.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::core {
namespace {

using assay::testing::IsOk;
using assay::testing::TempDir;

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  uint64_t value = otherwise;
  if (text != nullptr) (void)absl::SimpleAtoi(text, &value);
  return value;
}

// Values of every kind, from good to absurd.
class Malice {
 public:
  explicit Malice(uint64_t seed) : random_(seed) {}

  size_t Below(size_t count) {
    return std::uniform_int_distribution<size_t>(0, count - 1)(random_);
  }
  bool OneIn(size_t count) { return Below(count) == 0; }

  template <typename T>
  const T& Of(const std::vector<T>& choices) {
    return choices[Below(choices.size())];
  }

  int64_t Number() {
    return Of<int64_t>({0, 1, 2, 3, 1, 2, 1, -1, 1000, 4096, std::numeric_limits<int32_t>::max(),
                        std::numeric_limits<int32_t>::min(), std::numeric_limits<int64_t>::max(),
                        std::numeric_limits<int64_t>::min(),
                        std::numeric_limits<int64_t>::max() - 1});
  }
  int32_t Small() {
    return Of<int32_t>({0, 1, 1, 1, 2, 3, -1, 5000, std::numeric_limits<int32_t>::max(),
                        std::numeric_limits<int32_t>::min()});
  }
  double Real() {
    return Of<double>({0, 1, -1, 1e308, std::numeric_limits<double>::quiet_NaN(),
                       std::numeric_limits<double>::infinity(),
                       -std::numeric_limits<double>::infinity()});
  }
  std::string Text() {
    switch (Below(8)) {
      case 0:
        return "";
      case 1:
        return std::string("a\0b", 3);
      case 2:
        return "\xff\xfe\xc3(";  // no UTF-8
      case 3:
        return "\x1b[2J\r\n\"\\";
      case 4:
        return std::string(Below(200'000), '\x01');  // six times as long in JSON
      case 5:
        return "nan";
      default:
        return Name();
    }
  }
  std::string Name() { return Of<std::string>({"w0", "w1", "w2", "lab", "alice", "cosmo32", "x"}); }
  std::string Worker() { return OneIn(10) ? Text() : Of<std::string>({"w0", "w1", "w2"}); }
  RunId Run() { return RunId{OneIn(4) ? Number() : static_cast<int64_t>(Below(6)) + 1}; }
  SubmissionId Entry() {
    return SubmissionId{OneIn(4) ? Number() : static_cast<int64_t>(Below(4)) + 1};
  }

  template <typename Make>
  auto Some(size_t count_max, Make make) {
    std::vector<decltype(make())> items;
    for (size_t count = Below(count_max + 1); count > 0; --count)
      items.push_back(make());
    return items;
  }
  std::map<std::string, std::string> Labels() {
    std::map<std::string, std::string> labels;
    while (OneIn(2))
      labels[Text()] = Text();
    return labels;
  }

  assay::rules::Finding Finding() {
    return {.rule_id = Text(),
            .severity = OneIn(2) ? Severity::kError : Severity::kWarning,
            .error_class = Text(),
            .line = Number(),
            .key = Text(),
            .expected = Text(),
            .found = Text(),
            .remedy = Text()};
  }
  ArtifactRef Artifact() {
    return {.file_name = OneIn(3) ? Text() : "result_1.txt",
            .sha256 = OneIn(3) ? Text() : std::string(64, OneIn(2) ? 'a' : 'b'),
            .size_bytes = OneIn(2) ? Number() : 5};
  }
  SubmissionSpec Spec() {
    SubmissionSpec spec = testing::SomeSpec();
    if (OneIn(3)) spec.organization = Text();
    if (OneIn(5)) spec.system = Text();
    if (OneIn(9)) spec.benchmark = Text();
    if (OneIn(9)) spec.division = Text();
    if (OneIn(9)) spec.dataset = Text();
    if (OneIn(4)) spec.node_count = Small();
    if (OneIn(9)) spec.ranks_per_node = Small();
    if (OneIn(4)) spec.run_count = Small();
    if (OneIn(4)) spec.replacement_count_max = Small();
    if (OneIn(9)) spec.epoch_count_max = Small();
    if (OneIn(9)) spec.run_timeout_ms = Number();
    if (OneIn(9)) spec.worker_labels = Labels();
    if (OneIn(3)) spec.hyperparameters = Some(4, [this] { return Hyperparameter{Text(), Text()}; });
    if (OneIn(9)) spec.borrowing = Borrowing{Entry(), Entry()};
    return spec;
  }
  RunFacts Facts() {
    RunFacts facts;
    if (OneIn(2)) facts.is_compliant = OneIn(2);
    if (OneIn(2)) facts.is_converged = OneIn(2);
    facts.run_start_ms = Number();
    facts.quality = Real();
    facts.epoch_count = Number();
    facts.global_batch_size = Number();
    facts.findings = Some(3, [this] { return Finding(); });
    return facts;
  }
  std::vector<RunEvent> Events() {
    int64_t seq = OneIn(4) ? Number() : static_cast<int64_t>(Below(4)) + 1;
    return Some(3, [&] {
      RunEvent event{.seq = OneIn(20) ? Number() : seq,
                     .kind = Of<RunEventKind>({RunEventKind::kLogLine, RunEventKind::kFirstTouch,
                                               RunEventKind::kFinding, RunEventKind::kProgress}),
                     .text = Text(),
                     .wall_us = Number(),
                     .mono_ns = Number(),
                     .line = Number()};
      if (seq < std::numeric_limits<int64_t>::max()) ++seq;
      if (OneIn(3)) event.finding = Finding();
      return event;
    });
  }
  CacheReport Cache() {
    return {
        .number = OneIn(2) ? Number() : Small(),
        .is_done = OneIn(2),
        .problem = Text(),
        .bytes = Number(),
        .datasets = Some(2, [this] { return CachedDataset{.digest = Text(), .bytes = Number()}; }),
        .is_temporary = OneIn(2)};
  }
  WorkerReport Report() {
    WorkerReport report = PlainReport();
    if (OneIn(2)) report.cache = Cache();
    return report;
  }
  WorkerReport PlainReport() {
    return {.phase = Of<WorkerPhase>(
                {WorkerPhase::kIdle, WorkerPhase::kExecuting, WorkerPhase::kFinished}),
            .run = Run(),
            .generation = OneIn(3) ? Number() : 1,
            .exit_code = OneIn(2) ? 0 : Small(),
            .reason = Text(),
            .artifacts = Some(2, [this] { return Artifact(); })};
  }

 private:
  std::mt19937_64 random_;
};

// One command of the alternative with this index. A new alternative does not compile until it is
// here.
struct Maker {
  Malice& m;

  CommandBody operator()(const CreateSubmission&) {
    const SubmissionSpec spec = m.Spec();
    CreateSubmission body{.request_id = m.Text(), .spec = spec};
    body.rules.digest = m.Text();
    body.rules.quality_target = m.Real();
    body.rules.required_run_count = m.Small();
    body.findings = m.OneIn(5) ? m.Some(2, [this] { return m.Finding(); }) : std::vector<Finding>();
    for (int k = 1; k <= 300; ++k)
      body.seeds.push_back(k);
    if (m.OneIn(9)) body.seeds = m.Some(3, [this] { return m.Number(); });
    if (spec.borrowing && !m.OneIn(4))
      body.borrowing =
          BorrowingRecord{m.Number(), m.Number(), {{m.Text(), m.Text(), m.Text(), m.Text()}}};
    return body;
  }
  CommandBody operator()(const CancelSubmission&) { return CancelSubmission{m.Entry(), m.Text()}; }
  CommandBody operator()(const ImportSubmission&) {
    ImportSubmission body{.spec = m.Spec(), .source_path = m.Text(), .scaling = m.Text()};
    body.runs = m.Some(3, [this] {
      return ImportSubmission::ImportedRun{m.Artifact(), m.Facts(), m.Text()};
    });
    if (m.OneIn(2)) body.score_minutes = m.Real();
    if (m.OneIn(2)) body.throughput = Throughput{m.Small(), m.Small(), m.Number(), m.Real()};
    body.findings = m.Some(2, [this] { return m.Finding(); });
    body.reason = m.Text();
    return body;
  }
  CommandBody operator()(const NoteSubmission&) {
    return NoteSubmission{m.Name(), m.Entry(), m.Text()};
  }
  CommandBody operator()(const PublishSubmission&) {
    return PublishSubmission{m.Entry(), m.OneIn(2) ? m.Number() : 0};
  }
  CommandBody operator()(const WithdrawSubmission&) {
    return WithdrawSubmission{m.Entry(), m.Text()};
  }
  CommandBody operator()(const PruneInstances&) {
    return PruneInstances{.submission = m.Entry(),
                          .runs = m.Some(3, [this] { return m.Run(); }),
                          .throughput = {m.Small(), m.Small(), m.Number(), m.Real()},
                          .reason = m.Text()};
  }
  CommandBody operator()(const ExplainSubmission&) { return ExplainSubmission{m.Entry()}; }
  CommandBody operator()(const PlanPlacement&) { return PlanPlacement{m.Spec()}; }
  CommandBody operator()(const Synchronize&) {
    Synchronize body{.worker = m.Worker(), .report = m.Report()};
    body.description.incarnation = m.OneIn(9) ? m.Text() : "i1";
    body.description.capabilities.core_count = m.Small();
    body.description.capabilities.memory_bytes = m.Number();
    body.description.capabilities.cache_bytes = m.OneIn(3) ? m.Number() : 1;
    if (m.OneIn(5)) body.description.labels = m.Labels();
    if (m.OneIn(5)) body.description.version = m.Text();
    if (m.OneIn(9)) body.description.capabilities.backends = {m.Text()};
    body.clock_offset_us = m.Number();
    body.clock_offset_uncertainty_us = m.Number();
    body.is_leaving = m.OneIn(9);
    body.poll_timeout_us = m.Number();
    if (m.OneIn(3))
      body.figures = NodeFigures{.age_ms = m.Number(),
                                 .run_cpu_share = m.Real(),
                                 .memory_used_bytes = m.Number(),
                                 .quality = m.Real()};
    return body;
  }
  CommandBody operator()(const AppendRunEvents&) {
    return AppendRunEvents{.run = m.Run(),
                           .generation = m.OneIn(3) ? m.Number() : 1,
                           .node_rank = m.Small(),
                           .events = m.Events(),
                           .worker = m.OneIn(2) ? m.Worker() : ""};
  }
  CommandBody operator()(const RecordArtifact&) { return Record(); }
  CommandBody operator()(const AuthorizeUpload&) { return AuthorizeUpload{Record()}; }
  CommandBody operator()(const OrderCaches&) {
    return OrderCaches{.dataset = m.OneIn(2) ? "cosmo32" : m.Text(),
                       .action = kCacheActions[m.OneIn(2)   ? 0
                                               : m.OneIn(2) ? 1
                                               : m.OneIn(2) ? 2
                                                            : 3],
                       .workers = m.Some(3, [this] { return m.Worker(); }),
                       .path = m.OneIn(4) ? m.Text() : ""};
  }
  CommandBody operator()(const DrainWorker&) { return DrainWorker{m.Worker(), m.Text()}; }
  CommandBody operator()(const ResumeWorker&) { return ResumeWorker{m.Worker()}; }
  CommandBody operator()(const LabelWorker&) {
    return LabelWorker{m.Worker(), m.Labels(), m.Some(2, [this] { return m.Text(); })};
  }
  CommandBody operator()(const RevokeWorker&) { return RevokeWorker{m.Worker(), m.Text()}; }
  CommandBody operator()(const ListWorkers&) { return ListWorkers{.is_brief = m.OneIn(2)}; }
  CommandBody operator()(const CreateToken&) {
    CreateToken body = testing::SomeToken();
    body.request_id = m.Text();
    body.kind = m.OneIn(2) ? TokenKind::kAccess : TokenKind::kEnrol;
    body.role = body.kind == TokenKind::kEnrol ? "worker" : body.role;
    body.principal = m.OneIn(2) ? m.Worker() : m.Text();
    body.organization = m.Text();
    body.secret_sha256 =
        m.OneIn(3) ? m.Text() : std::string(64, static_cast<char>('a' + m.Below(26)));
    body.expires_at_us = m.OneIn(2) ? m.Number() : body.expires_at_us;
    return body;
  }
  CommandBody operator()(const RevokeToken&) { return RevokeToken{TokenId{m.Number()}}; }
  CommandBody operator()(const RedeemEnrolment&) {
    return RedeemEnrolment{std::string(64, 'a'), m.Worker()};
  }
  CommandBody operator()(const AddDataset&) {
    if (m.OneIn(2)) return AddDataset{testing::SomeDataset()};
    return AddDataset{{m.Name(),
                       m.Text(),
                       "/" + m.Text(),
                       m.Text(),
                       m.Number(),
                       m.Number(),
                       m.Text(),
                       {{m.Name(), m.Text()}}}};
  }
  CommandBody operator()(const RemoveDataset&) { return RemoveDataset{m.Name()}; }
  CommandBody operator()(const SaveView&) {
    View view{.name = m.Name(), .kind = m.OneIn(2) ? "run" : m.Text(), .filter = m.Text()};
    view.is_shared = m.OneIn(2);
    view.columns = {m.Text()};
    return SaveView{std::move(view)};
  }
  CommandBody operator()(const RemoveView&) { return RemoveView{m.Name()}; }
  CommandBody operator()(const RecordBackup&) {
    return RecordBackup{m.Text(), m.Number(), m.Number(), m.Number()};
  }
  CommandBody operator()(const PruneArtifacts&) {
    PruneArtifacts body{.submission = m.Entry(), .policy = m.Text()};
    body.artifacts = m.Some(2, [this] {
      return PrunedArtifact{m.Run(), {m.OneIn(2) ? "telemetry_0.bin" : m.Text(), m.Text(), 1}};
    });
    return body;
  }
  CommandBody operator()(const RecordRefusal&) {
    return RecordRefusal{{m.Text(), m.Text(), m.Text(), m.Text(), m.Number(), m.Number()}};
  }
  CommandBody operator()(const GetServerInfo&) { return GetServerInfo{}; }
  CommandBody operator()(const LogChecked&) {
    return LogChecked{m.Run(), m.Facts(), m.OneIn(2) ? m.Text() : ""};
  }
  CommandBody operator()(const SetScored&) {
    SetScored body{.submission = m.Entry()};
    if (m.OneIn(2)) body.score_minutes = m.Real();
    body.findings = m.Some(2, [this] { return m.Finding(); });
    body.reason = m.Text();
    return body;
  }
  CommandBody operator()(const RequestAllocation&) {
    return RequestAllocation{.request_id = m.Text(), .spec = Lease(), .reason = m.Text()};
  }
  CommandBody operator()(const ReleaseAllocation&) {
    return ReleaseAllocation{AllocationId{m.Small()}, m.Text()};
  }
  CommandBody operator()(const JoinAllocation&) {
    return JoinAllocation{.submission = m.Entry(),
                          .job = m.Text(),
                          .hosts = {m.Text(), m.Text()},
                          .token_sha256s = {std::string(64, 'a'), std::string(64, 'b')},
                          .token_expires_at_us = m.Number(),
                          .deadline_us = m.Number()};
  }
  CommandBody operator()(const EnrolNode&) {
    return EnrolNode{.allocation = AllocationId{m.Small()},
                     .job = m.Text(),
                     .node = m.Text(),
                     .worker = m.Worker()};
  }
  CommandBody operator()(const LauncherStarted&) {
    return LauncherStarted{.launcher = m.OneIn(2) ? m.Text() : "local",
                           .allocation_count_max = m.Small(),
                           .node_count_min = m.Small(),
                           .node_count_max = m.Small(),
                           .is_wanted_at_once = m.OneIn(2)};
  }
  CommandBody operator()(const LaunchReported&) {
    return LaunchReported{.allocation = AllocationId{m.Small()},
                          .outcome = static_cast<LaunchReported::Outcome>(m.Below(4)),
                          .workers = m.Some(3, [this] { return m.Worker(); }),
                          .deadline_us = m.OneIn(2) ? m.Number() : 0,
                          .reason = m.Text()};
  }
  CommandBody operator()(const Tick&) { return Tick{}; }

  AllocationSpec Lease() {
    return {.launcher = m.OneIn(3) ? m.Text() : "",
            .node_count = m.Small(),
            .labels = {{m.Text(), m.Text()}},
            .submission = m.OneIn(2) ? m.Entry() : SubmissionId{},
            .lifetime_us = m.OneIn(2) ? m.Number() : 0};
  }
  RecordArtifact Record() {
    return {.run = m.Run(),
            .generation = m.OneIn(3) ? m.Number() : 1,
            .artifact = m.Artifact(),
            .worker = m.OneIn(2) ? m.Worker() : ""};
  }
};

template <size_t... kIndex>
std::vector<CommandBody> OneOfEach(std::index_sequence<kIndex...>) {
  return {CommandBody(std::in_place_index<kIndex>)...};
}

// All of a state as the store writes it: equal where values that are not numbers are.
std::vector<std::string> Written(const State& state) {
  std::vector<std::string> rows = {absl::StrCat(state.last_seq, " ", state.last_submission, " ",
                                                state.last_run, " ", state.last_token, " ",
                                                state.last_allocation)};
  for (const auto& [id, submission] : state.submissions)
    rows.push_back(store::Encode(submission));
  for (const auto& [id, run] : state.runs) {
    rows.push_back(store::Encode(run));
    for (const RunNode& node : run.nodes)
      rows.push_back(absl::StrCat(node.worker, " ", ToString(node.phase), " ", node.exit_code, " ",
                                  node.is_lost, node.is_released, " ", node.last_seq));
  }
  for (const auto& [name, worker] : state.workers)
    rows.push_back(store::Encode(worker));
  for (const auto& [id, dataset] : state.datasets)
    rows.push_back(store::Encode(dataset));
  for (const auto& [id, token] : state.tokens)
    rows.push_back(store::Encode(token));
  for (const auto& [id, allocation] : state.allocations)
    rows.push_back(store::Encode(allocation));
  rows.push_back(absl::StrCat(state.requests.size(), " requests"));
  return rows;
}

class HostileCommandsTest : public ::testing::Test {
 protected:
  void Play(uint64_t seed, int batch_count) {
    Malice malice(seed);
    const std::vector<CommandBody> kinds =
        OneOfEach(std::make_index_sequence<std::variant_size_v<CommandBody>>());
    const TempDir dir;
    const std::string path = dir.Path("assay.db");
    auto store = *store::Store::Open(path);
    int64_t now_us = testing::kStart;
    auto core = std::make_unique<Core>(Policy{.secret = "s"}, *store->Load(), now_us);
    for (int batch = 0; batch < batch_count; ++batch) {
      std::vector<Command> commands;
      if (batch == 0) commands.push_back({"root", AddDataset{testing::SomeDataset()}});
      for (size_t count = malice.Below(8); count > 0; --count)
        commands.push_back({.principal = malice.OneIn(3) ? malice.Text() : malice.Name(),
                            .body = std::visit(Maker{malice}, malice.Of(kinds)),
                            .standing = {malice.OneIn(3) ? malice.Text() : "submitter",
                                         malice.OneIn(3) ? malice.Text() : "lab"}});
      for (const Command& command : commands)
        static_cast<void>(store::RestoreFor(command, store.get(), core.get()));
      now_us += static_cast<int64_t>(malice.Below(30)) * testing::kSecond;
      const Outcome outcome = core->Handle(commands, now_us);
      ASSERT_EQ(outcome.replies.size(), commands.size());
      const absl::Status status = store->Commit(outcome, core->state());
      if (status.ok()) {
        core->DropRedundant();
      } else {
        // Refused as a whole; the state is as before.
        ASSERT_TRUE(absl::IsInvalidArgument(status) || absl::IsInternal(status)) << status;
        core->Reset(*store->Load());
      }
      if (batch % 10 != 9) continue;
      const absl::StatusOr<State> loaded = store->Load();
      ASSERT_THAT(loaded, IsOk());
      ASSERT_EQ(Written(*loaded), Written(core->state())) << "batch=" << batch;
      store = *store::Store::Open(path);
      core = std::make_unique<Core>(Policy{.secret = "s"}, *store->Load(), now_us);
    }
    reached_ += core->state().last_run;
  }

  int64_t reached_ = 0;
};

TEST_F(HostileCommandsTest, NeitherEndTheCoreNorPartItFromTheStore) {
  const uint64_t first = FromEnvironment("ASSAY_HOSTILE_SEED", 1);
  const uint64_t count = FromEnvironment("ASSAY_HOSTILE_COUNT", 20);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed=", seed));
    Play(seed, 60);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(reached_, 0) << "no run was ever queued: the commands are too absurd";
}

}  // namespace
}  // namespace assay::core
