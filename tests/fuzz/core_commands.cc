#include "tests/fuzz/core_commands.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

namespace assay::testing {
namespace {

using core::RunId;
using core::SubmissionId;

constexpr uint32_t kWorkerCount = 5;
// Outside of these a call does not reach the core (server/api/limits.h).
constexpr int64_t kMicrosecondsMax = 253'402'300'799'000'000;  // the end of the year 9999
constexpr int64_t kSeqMax = std::numeric_limits<int64_t>::max() - 1000;

constexpr absl::string_view kPeople[] = {"alice", "bob", "carol"};

class Decoder {
 public:
  Decoder(const core::Core& core, ByteSource* bytes)
      : core_(core), state_(core.state()), bytes_(*bytes) {}

  core::Command Decode() {
    // What workers say comes in many steps, so it comes more often.
    using Method = core::Command (Decoder::*)();
    constexpr Method kOften[] = {&Decoder::Obey,   &Decoder::Report, &Decoder::Append,
                                 &Decoder::Record, &Decoder::Create, &Decoder::Judge,
                                 &Decoder::Score};
    constexpr Method kSeldom[] = {
        &Decoder::Cancel,   &Decoder::Import,   &Decoder::Note,       &Decoder::Publish,
        &Decoder::Drain,    &Decoder::Resume,   &Decoder::Revoke,     &Decoder::MakeToken,
        &Decoder::EndToken, &Decoder::Redeem,   &Decoder::Add,        &Decoder::Remove,
        &Decoder::Look,     &Decoder::Launched, &Decoder::LauncherUp, &Decoder::Lease,
        &Decoder::EndLease, &Decoder::Join,     &Decoder::EnrolInJob, &Decoder::Prune,
        &Decoder::Cache,    &Decoder::Time,     &Decoder::Save,       &Decoder::Forget,
        &Decoder::Upkeep,   &Decoder::Withdraw, &Decoder::Label};
    static_assert(std::variant_size_v<core::CommandBody> == 39, "decode the new command above");
    const uint32_t how = bytes_.Below(8);
    if (how < 4) return Obey();
    return (this->*(how < 7 ? bytes_.Pick(kOften) : bytes_.Pick(kSeldom)))();
  }

 private:
  // ------------------------------------------------------------------------------------- pieces

  std::string WorkerName() {
    return bytes_.TextLike(absl::StrCat("w", bytes_.Below(kWorkerCount)));
  }

  core::Command From(const std::string& principal, core::CommandBody body) {
    return core::Command{.principal = principal, .body = std::move(body)};
  }
  core::Command FromPerson(core::CommandBody body) {
    return From(std::string(bytes_.Pick(kPeople)), std::move(body));
  }
  core::Command FromWorker(const std::string& worker, core::CommandBody body) {
    core::Command command = From(worker, std::move(body));
    if (bytes_.Rarely(32)) command.certificate_generation = bytes_.Near<int64_t>(0);
    return command;
  }
  core::Command FromCoordinator(core::CommandBody body) {
    return From(std::string(core::kCoordinator), std::move(body));
  }

  // One of the latest runs or submissions, or none that exists.
  template <typename Id>
  Id Recent(int64_t last) {
    const int64_t back = bytes_.Below(6);
    return Id{bytes_.Near<int64_t>(back < last ? last - back : last)};
  }
  // One that executes, or an older one.
  RunId SomeRun() {
    if (state_.active.empty() || bytes_.Rarely(4)) return Recent<RunId>(state_.last_run);
    return *std::next(
        state_.active.begin(),
        bytes_.Below(static_cast<uint32_t>(std::min<size_t>(state_.active.size(), 4))));
  }

  // An id as it is read from a text: it counts from 1.
  SubmissionId Named() {
    return SubmissionId{std::max<int64_t>(Recent<SubmissionId>(state_.last_submission).number, 1)};
  }

  core::ArtifactRef Artifact() {
    const std::string digest(64, static_cast<char>('a' + bytes_.Below(3)));
    return {.file_name = bytes_.TextLike(absl::StrCat("result_", bytes_.Below(3), ".txt")),
            .sha256 = bytes_.TextLike(digest),
            .size_bytes = bytes_.Near<int64_t>(100)};
  }

  core::RunFacts Facts() {
    core::RunFacts facts;
    if (bytes_.Below(2) == 0) facts.is_compliant = bytes_.Below(2) == 0;
    if (bytes_.Below(2) == 0) facts.is_converged = bytes_.Below(2) == 0;
    facts.run_start_ms = bytes_.Near<int64_t>(1000);
    facts.run_stop_ms = bytes_.Near<int64_t>(2000);
    facts.quality = bytes_.Below(2) == 0 ? 0.25 : -1e308;
    facts.global_batch_size = bytes_.Near<int64_t>(64);
    if (bytes_.Rarely(4)) facts.findings.push_back({.rule_id = bytes_.TextLike("R-RUN-001")});
    return facts;
  }

  core::SubmissionSpec Spec() {
    core::SubmissionSpec spec;
    spec.organization = bytes_.TextLike("lab");
    spec.system = bytes_.TextLike("machine");
    spec.benchmark = bytes_.TextLike("cosmoflow");
    spec.division = bytes_.TextLike("closed");
    spec.round = bytes_.TextLike("hpc-3.0.0");
    spec.dataset = bytes_.TextLike("cosmo32");
    spec.node_count = bytes_.Near<int32_t>(1 + static_cast<int32_t>(bytes_.Below(3)));
    spec.run_count = Few(1 + static_cast<int32_t>(bytes_.Below(3)));
    spec.replacement_count_max = Few(static_cast<int32_t>(bytes_.Below(3)));
    spec.epoch_count_max = bytes_.Near<int32_t>(128);
    spec.run_timeout_ms = bytes_.Near<int64_t>(600'000);
    spec.staging = bytes_.TextLike("node");
    if (bytes_.Rarely(4)) spec.worker_labels["rack"] = bytes_.TextLike("a");
    if (bytes_.Rarely(4)) spec.workload = core::TrainerWorkload{bytes_.TextLike("onednn")};
    return spec;
  }

  // Out of bounds also, but never so many that the state grows large.
  int32_t Few(int32_t usual) { return bytes_.Near<int32_t>(usual); }

  core::WorkerDescription Description() {
    core::WorkerDescription description;
    description.incarnation = absl::StrCat("i", bytes_.Rarely(16) ? bytes_.Below(8) : 0);
    if (bytes_.Rarely(32)) description.incarnation.clear();
    description.capabilities.rendezvous_address = "node:7000";
    description.capabilities.cache_bytes = bytes_.Rarely(8) ? 0 : 1;
    if (bytes_.Rarely(8)) description.capabilities.backends = {bytes_.TextLike("onednn")};
    if (bytes_.Rarely(8)) description.labels["rack"] = bytes_.TextLike("a");
    if (bytes_.Rarely(16)) description.version = bytes_.TextLike("1");
    return description;
  }

  core::Synchronize Call(const std::string& worker, core::WorkerReport report) {
    core::Synchronize call{.worker = worker, .report = std::move(report)};
    call.description = Description();
    if (bytes_.Rarely(4)) {
      call.clock_offset_us = bytes_.Near<int64_t>(1000, -kMicrosecondsMax, kMicrosecondsMax);
      call.clock_offset_uncertainty_us = bytes_.Near<int64_t>(100, 0, kMicrosecondsMax);
    }
    call.is_leaving = bytes_.Rarely(16);
    return call;
  }

  // ------------------------------------------------------------------------------------ workers

  // A worker that does what it should, and is as often as not done with it.
  core::Command Obey() {
    const std::string worker = absl::StrCat("w", bytes_.Below(kWorkerCount));
    const core::Desired desired = core_.DesiredFor(worker);
    core::WorkerReport report;
    if (desired.action == core::DesiredAction::kExecute) {
      report.phase =
          bytes_.Below(2) == 0 ? core::WorkerPhase::kExecuting : core::WorkerPhase::kFinished;
    } else if (desired.action == core::DesiredAction::kStop) {
      report.phase = core::WorkerPhase::kFinished;
    }
    if (report.phase != core::WorkerPhase::kIdle) {
      report.run = desired.run;
      report.generation = desired.generation;
    }
    if (report.phase == core::WorkerPhase::kFinished) report.exit_code = ExitCode();
    if (desired.action == core::DesiredAction::kCheck)
      report.preflight = Checked(desired.generation);
    if (desired.cache.has_value()) report.cache = Cached(desired.cache->number);
    return FromWorker(worker, Call(worker, std::move(report)));
  }

  core::PreflightReport Checked(int64_t number) {
    core::PreflightReport report{.number = bytes_.Near<int64_t>(number),
                                 .is_done = bytes_.Below(4) != 0};
    core::NodeCheck check{.check = bytes_.TextLike("memory"), .is_measured = bytes_.Below(4) != 0};
    check.value = static_cast<double>(bytes_.Near<int64_t>(10));
    if (bytes_.Rarely(8)) check.problem = bytes_.TextLike("slow");
    report.checks = {check, {.check = "quiet"}};
    if (bytes_.Rarely(2)) report.fabric = Fabric();
    return report;
  }

  core::CacheReport Cached(int64_t number) {
    core::CacheReport report{.number = bytes_.Near<int64_t>(number),
                             .is_done = bytes_.Below(2) == 0,
                             .bytes = bytes_.Near<int64_t>(10)};
    if (bytes_.Rarely(4)) report.problem = bytes_.TextLike("no space");
    report.is_temporary = bytes_.Below(2) == 0;
    if (bytes_.Below(2) == 0)
      report.datasets = {{.digest = bytes_.TextLike("d1"), .files = 1, .files_total = 1}};
    return report;
  }

  core::FabricReport Fabric() {
    core::FabricReport fabric{.all_reduce_us = static_cast<double>(bytes_.Near<int64_t>(10))};
    for (uint32_t k = bytes_.Below(4); k > 0; --k)
      fabric.links.push_back({.latency_us = static_cast<double>(bytes_.Near<int64_t>(2)),
                              .gb_per_s = static_cast<double>(bytes_.Near<int64_t>(10))});
    if (bytes_.Rarely(4)) fabric.absent_ranks.push_back(bytes_.Near<int32_t>(1));
    if (bytes_.Rarely(4)) fabric.error = bytes_.TextLike("rank 1 went away");
    return fabric;
  }

  // A worker that says anything.
  core::Command Report() {
    constexpr core::WorkerPhase kPhases[] = {
        core::WorkerPhase::kIdle, core::WorkerPhase::kExecuting, core::WorkerPhase::kFinished};
    const std::string worker = WorkerName();
    core::WorkerReport report;
    report.phase = bytes_.Pick(kPhases);
    report.run = SomeRun();
    report.generation = bytes_.Near<int64_t>(1);
    report.exit_code = ExitCode();
    report.reason = bytes_.TextLike("why");
    if (bytes_.Rarely(4)) report.preflight = Checked(core_.state().last_seq);
    if (bytes_.Rarely(4)) report.cache = Cached(core_.state().last_seq);
    if (bytes_.Rarely(4)) report.artifacts.push_back(Artifact());
    return FromWorker(worker, Call(worker, std::move(report)));
  }

  int32_t ExitCode() {
    constexpr int32_t kCodes[] = {0, 0, 0, 0, 1, 4, 9, 128, 137, 255};
    return bytes_.Near<int32_t>(bytes_.Pick(kCodes));
  }

  core::Command Append() {
    constexpr core::RunEventKind kKinds[] = {
        core::RunEventKind::kLogLine, core::RunEventKind::kFirstTouch, core::RunEventKind::kFinding,
        core::RunEventKind::kProgress};
    core::AppendRunEvents command;
    command.run = SomeRun();
    const auto it = state_.runs.find(command.run);
    const bool is_there = it != state_.runs.end() && !it->second.nodes.empty();
    command.generation = bytes_.Near<int64_t>(1);
    const uint32_t rank =
        is_there ? bytes_.Below(static_cast<uint32_t>(it->second.nodes.size())) : 0;
    command.node_rank = bytes_.Near<int32_t>(static_cast<int32_t>(rank));
    const int64_t last_seq = is_there ? it->second.nodes[rank].last_seq : 0;
    command.worker = is_there && !bytes_.Rarely(8) ? it->second.nodes[rank].worker : WorkerName();
    int64_t seq = bytes_.Near<int64_t>(last_seq + 1, std::numeric_limits<int64_t>::min(), kSeqMax);
    for (uint32_t count = bytes_.Below(4); count > 0; --count) {
      command.events.push_back(
          {.seq = seq,
           .kind = bytes_.Pick(kKinds),
           .text = bytes_.TextLike("line"),
           .wall_us = bytes_.Near<int64_t>(1'700'000'000'000'000, 0, kMicrosecondsMax),
           .mono_ns = bytes_.Near<int64_t>(5),
           .is_attributed = bytes_.Below(2) == 0});
      seq = seq == kSeqMax || bytes_.Rarely(16) ? 1 : seq + 1;
    }
    return FromWorker(command.worker, std::move(command));
  }

  core::Command Record() {
    core::RecordArtifact command;
    command.run = SomeRun();
    command.generation = bytes_.Near<int64_t>(1);
    command.artifact = Artifact();
    const auto it = state_.runs.find(command.run);
    const bool is_there = it != state_.runs.end() && !it->second.nodes.empty();
    command.worker = is_there && !bytes_.Rarely(8) ? it->second.nodes[0].worker : WorkerName();
    if (bytes_.Rarely(4)) return FromWorker(command.worker, core::AuthorizeUpload{command});
    return FromWorker(command.worker, std::move(command));
  }

  // --------------------------------------------------------------------------------- submitters

  core::Command Create() {
    core::CreateSubmission command;
    command.request_id = bytes_.TextLike(absl::StrCat("request-", bytes_.Byte()));
    command.spec = Spec();
    command.rules.digest = "rules";
    command.rules.required_run_count = bytes_.Near<int32_t>(1);
    if (bytes_.Rarely(16)) command.findings.push_back({.rule_id = bytes_.TextLike("R-HP-001")});
    constexpr int64_t kSeedsMax = 8;
    const int64_t needed = int64_t{command.spec.run_count} + command.spec.replacement_count_max;
    for (int64_t k = 1; k <= std::min(needed, kSeedsMax); ++k)
      command.seeds.push_back(bytes_.Near<int64_t>(1000 + k));
    if (bytes_.Rarely(8)) {
      command.spec.borrowing = core::Borrowing{.own = Named(), .lender = Named()};
      if (!bytes_.Rarely(8)) command.borrowing.emplace();
    }
    return FromPerson(std::move(command));
  }

  core::Command Cancel() {
    return FromPerson(core::CancelSubmission{Recent<SubmissionId>(state_.last_submission),
                                             bytes_.TextLike("enough")});
  }
  core::Command Withdraw() {
    return FromPerson(core::WithdrawSubmission{Named(), bytes_.TextLike("mis-cabled")});
  }
  core::Command Note() {
    return FromPerson(
        core::NoteSubmission{.request_id = bytes_.TextLike("n-1"),
                             .submission = Recent<SubmissionId>(state_.last_submission),
                             .text = bytes_.TextLike("looks odd")});
  }
  core::Command Publish() {
    return FromPerson(core::PublishSubmission{Recent<SubmissionId>(state_.last_submission),
                                              bytes_.Near<int64_t>(0)});
  }
  core::Command Prune() {
    core::PruneInstances command{.submission = Recent<SubmissionId>(state_.last_submission),
                                 .reason = bytes_.TextLike("better")};
    const auto it = state_.submissions.find(command.submission);
    for (uint32_t count = bytes_.Below(3); count > 0; --count)
      command.runs.push_back(
          it == state_.submissions.end() || it->second.runs.empty()
              ? SomeRun()
              : it->second.runs[bytes_.Below(static_cast<uint32_t>(it->second.runs.size()))]);
    return FromPerson(std::move(command));
  }

  core::Command Import() {
    core::ImportSubmission command;
    command.spec = Spec();
    command.source_path = bytes_.TextLike(absl::StrCat("round/org/", bytes_.Below(8)));
    for (uint32_t count = bytes_.Below(3); count > 0; --count)
      command.runs.push_back({.log = Artifact(), .facts = Facts(), .file_name = "result_0.txt"});
    if (bytes_.Below(2) == 0) command.score_minutes = 12.5;
    command.reason = bytes_.TextLike("imported");
    return FromPerson(std::move(command));
  }

  // -------------------------------------------------------------------------------------- facts

  core::Command Judge() {
    core::LogChecked command;
    command.run = SomeRun();
    command.facts = Facts();
    if (bytes_.Rarely(8)) command.error = bytes_.TextLike("cannot be read");
    return FromCoordinator(std::move(command));
  }

  core::Command Score() {
    core::SetScored command;
    command.submission = Recent<SubmissionId>(state_.last_submission);
    if (bytes_.Below(2) == 0) command.score_minutes = 1.5;
    command.reason = bytes_.TextLike("scored");
    return FromCoordinator(std::move(command));
  }

  core::Command Launched() {
    return FromCoordinator(
        core::LaunchReported{.allocation = Recent<core::AllocationId>(state_.last_allocation),
                             .outcome = static_cast<core::LaunchReported::Outcome>(bytes_.Below(4)),
                             .workers = {WorkerName()},
                             .deadline_us = bytes_.Near<int64_t>(2'000'000'000'000'000),
                             .reason = bytes_.TextLike("no such program"),
                             .hosts = {bytes_.TextLike("n0")},
                             .job = bytes_.TextLike("4711"),
                             .waiting = {.words = bytes_.TextLike("job 4711"),
                                         .expected_start_us = bytes_.Near<int64_t>(0)}});
  }

  core::Command LauncherUp() {
    return FromCoordinator(core::LauncherStarted{.launcher = bytes_.TextLike("local"),
                                                 .allocation_count_max = bytes_.Near<int32_t>(2),
                                                 .node_count_min = bytes_.Near<int32_t>(1),
                                                 .node_count_max = bytes_.Near<int32_t>(2),
                                                 .is_wanted_at_once = bytes_.Below(2) == 0,
                                                 .is_per_submission = bytes_.Below(2) == 0,
                                                 .lifetime_us_max = bytes_.Near<int64_t>(0)});
  }

  core::Command Lease() {
    core::RequestAllocation command;
    command.request_id = bytes_.TextLike("request");
    command.spec.node_count = bytes_.Near<int32_t>(2);
    command.reason = bytes_.TextLike("for a test");
    return FromPerson(std::move(command));
  }

  core::Command EndLease() {
    return FromPerson(core::ReleaseAllocation{Recent<core::AllocationId>(state_.last_allocation),
                                              bytes_.TextLike("done")});
  }

  core::Command Join() {
    core::JoinAllocation command{.submission = Recent<SubmissionId>(state_.last_submission),
                                 .job = bytes_.TextLike("4711"),
                                 .token_expires_at_us = bytes_.Near<int64_t>(2'000'000'000'000'000),
                                 .deadline_us = bytes_.Near<int64_t>(2'000'000'000'000'000)};
    for (uint32_t i = bytes_.Below(3); i > 0; --i) {
      command.hosts.push_back(bytes_.TextLike("n0"));
      command.token_sha256s.emplace_back(64, 'a');
    }
    return FromPerson(std::move(command));
  }

  core::Command EnrolInJob() {
    core::EnrolNode command{.allocation = Recent<core::AllocationId>(state_.last_allocation),
                            .job = bytes_.TextLike("4711"),
                            .node = bytes_.TextLike("n0")};
    command.worker = WorkerName();
    return From("", std::move(command));
  }
  core::Command Time() { return FromCoordinator(core::Tick{}); }

  // ----------------------------------------------------------------------------- administration

  core::Command Drain() {
    return FromPerson(core::DrainWorker{WorkerName(), bytes_.TextLike("disk")});
  }
  core::Command Label() {
    return FromPerson(core::LabelWorker{WorkerName(), {{bytes_.TextLike("rack"), "7"}}, {"row"}});
  }
  core::Command Resume() { return FromPerson(core::ResumeWorker{WorkerName()}); }
  core::Command Revoke() {
    return FromPerson(core::RevokeWorker{WorkerName(), bytes_.TextLike("stolen")});
  }
  core::Command MakeToken() {
    constexpr absl::string_view kRoles[] = {"worker", "submitter", "operator", "reviewer"};
    core::CreateToken command;
    command.request_id = bytes_.TextLike(absl::StrCat("request-", bytes_.Byte()));
    command.kind = bytes_.Below(2) == 0 ? core::TokenKind::kEnrol : core::TokenKind::kAccess;
    command.role = command.kind == core::TokenKind::kEnrol && !bytes_.Rarely(8)
                       ? "worker"
                       : bytes_.TextLike(bytes_.Pick(kRoles));
    command.principal = WorkerName();
    command.organization = bytes_.TextLike("lab");
    command.secret_sha256 = Secret();
    command.expires_at_us = bytes_.Near<int64_t>(2'000'000'000'000'000);
    return FromPerson(std::move(command));
  }
  std::string Secret() {
    return bytes_.TextLike(std::string(64, static_cast<char>('0' + bytes_.Below(6))));
  }
  core::Command EndToken() {
    return FromPerson(core::RevokeToken{Recent<core::TokenId>(state_.last_token)});
  }
  core::Command Redeem() {
    const std::string secret = Secret();
    return From("", core::RedeemEnrolment{secret, WorkerName()});
  }

  core::Command Add() {
    core::Dataset dataset;
    dataset.id = bytes_.TextLike("cosmo32");
    dataset.benchmark = bytes_.TextLike("cosmoflow");
    dataset.path = bytes_.TextLike("/data/cosmo32");
    dataset.digest = bytes_.Rarely(4) ? "" : "ab";
    dataset.train_sample_count = bytes_.Near<int64_t>(256);
    dataset.parameters["cube_edge"] = absl::StrCat(bytes_.Near<int32_t>(32));
    return FromPerson(core::AddDataset{std::move(dataset)});
  }
  core::Command Remove() { return FromPerson(core::RemoveDataset{bytes_.TextLike("cosmo32")}); }
  core::Command Save() {
    return FromPerson(core::SaveView{
        {.name = bytes_.TextLike("fast"), .kind = "run", .filter = bytes_.TextLike("minutes<3")}});
  }
  core::Command Forget() { return FromPerson(core::RemoveView{bytes_.TextLike("fast")}); }
  core::Command Upkeep() {
    if (bytes_.Below(2) == 0) return FromPerson(core::RecordBackup{bytes_.TextLike("/srv/backup")});
    if (bytes_.Below(4) == 0) return FromPerson(core::RecordRefusal{{"", "unix:", "", "", 1}});
    const RunId run{std::max<int64_t>(SomeRun().number, 1)};  // the store names it
    return FromPerson(core::PruneArtifacts{Named(), "", {{run, {"telemetry_0.bin"}}}});
  }
  core::Command Cache() {
    core::OrderCaches command{.dataset = bytes_.TextLike("cosmo32")};
    command.action = core::kCacheActions[bytes_.Below(std::size(core::kCacheActions))];
    if (bytes_.Rarely(4)) command.path = bytes_.TextLike("/data/packed");
    if (bytes_.Below(2) == 0) command.workers = {WorkerName()};
    return FromPerson(std::move(command));
  }

  core::Command Look() {
    switch (bytes_.Below(4)) {
      case 0:
        return FromPerson(core::ExplainSubmission{Recent<SubmissionId>(state_.last_submission)});
      case 1:
        return FromPerson(core::PlanPlacement{Spec()});
      case 2:
        return FromPerson(core::ListWorkers{});
      default:
        return FromPerson(core::GetServerInfo{});
    }
  }

  const core::Core& core_;
  const core::State& state_;
  ByteSource& bytes_;
};

}  // namespace

core::Command DecodeCommand(const core::Core& core, ByteSource* bytes) {
  return Decoder(core, bytes).Decode();
}

}  // namespace assay::testing
