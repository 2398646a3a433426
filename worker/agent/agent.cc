#include "worker/agent/agent.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"

#include "assay/v1/run_spec.pb.h"

#include "common/exit_code.h"
#include "common/file.h"
#include "common/log.h"
#include "common/status.h"
#include "worker/agent/clock_watch.h"
#include "worker/agent/fences.h"
#include "worker/agent/node_figures.h"
#include "worker/agent/salvage.h"
#include "worker/agent/step_process.h"
#include "worker/agent/wire.h"

namespace assay::agent {
namespace {

// While a run goes on: each call tells what the node does, each reply how its clock stands.
constexpr absl::Duration kExecutingInterval = absl::Seconds(5);

}  // namespace

Agent::Agent(AgentOptions options, Endpoint endpoint, v1::WorkerService::StubInterface* stub,
             const Clock* clock)
    : options_(std::move(options)),
      stub_(stub),
      endpoint_(std::move(endpoint)),
      clock_(clock),
      check_(options_.config, options_.step_program),
      cache_(options_.config, options_.step_program) {}

std::string Agent::FencesPath() const {
  return JoinPath(options_.config.data_directory(), "fences");
}

AttachedRun* Agent::FindRun(const RunKey& key) {
  const auto it = runs_.find(key);
  return it == runs_.end() ? nullptr : &it->second;
}

absl::StatusOr<AgentEnd> Agent::Run(int stop_fd) {
  RETURN_IF_ERROR(Recover());
  sync_ = std::make_unique<SyncClient>(
      stub_, endpoint_, clock_,
      SyncClient::Callbacks{
          .on_reply =
              [this](int64_t call, const v1::DesiredState& proto) {
                std::optional<Desired> desired = FromProto(proto);
                if (!desired.has_value()) LOG(WARNING) << "unknown order " << proto.action();
                inbox_.Post(desired.has_value() ? Input(SyncReply{*std::move(desired), call})
                                                : Input(SyncFailed{call}));
              },
          .on_failure = [this](int64_t call,
                               const absl::Status& status) { NoteFailure(call, status); }});
  courier_ = std::make_unique<Courier>(
      stub_, endpoint_, clock_,
      Courier::Callbacks{
          .on_acked =
              [this](const RunKey& key, int64_t seq) {
                inbox_.Post(EventsAcked{key, seq});
              },
          .on_uploaded =
              [this](const RunKey& key, const UploadedFile& file) {
                inbox_.Post(ArtifactUploaded{key, file});
              },
          .on_refused = [this](const RunKey& key,
                               const absl::Status&) { inbox_.Post(DeliveryRefused{key}); }});
  fetcher_ = std::make_unique<SourceFetcher>(stub_, endpoint_, clock_);
  Loop(stop_fd);
  sync_.reset();
  courier_.reset();
  fetcher_.reset();
  if (leave_began_.has_value() || is_lease_over_) return AgentEnd::kStopped;
  return is_refused_ ? AgentEnd::kCertificateRefused : AgentEnd::kRenewalIsDue;
}

// On the client's thread.
void Agent::NoteFailure(int64_t call, const absl::Status& status) {
  if (absl::IsUnauthenticated(status)) is_refused_ = true;
  if (options_.ends_with_lease && absl::IsFailedPrecondition(status)) {
    LOG(INFO) << "leaves: " << status.message();
    is_lease_over_ = true;
  }
  inbox_.Post(SyncFailed{call});
}

// Every run whose directory was prepared is held; one that was not finished preparing is nothing.
absl::Status Agent::Recover() {
  const std::string runs_directory = JoinPath(options_.config.data_directory(), "runs");
  RETURN_IF_ERROR(MakeDirectories(runs_directory));
  absl::StatusOr<std::map<std::string, int64_t>> fences = LoadFences(FencesPath());
  RETURN_IF_ERROR(fences.status());
  ASSIGN_OR_RETURN(watch_, DirectoryWatch::Make(AttachedRun::IsWatched));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(runs_directory));
  std::map<RunKey, HeldRun> held;
  for (const std::string& name : names) {
    const std::optional<RunKey> key = RunDirectory::ParseName(name);
    const RunDirectory directory(JoinPath(runs_directory, name));
    if (!key.has_value()) continue;
    if (!FileExists(directory.SpecPath())) {
      RETURN_IF_ERROR(RemoveTree(directory.path()));
      continue;
    }
    LOG(INFO) << "found run=" << key->run << " generation=" << key->generation;
    Attach(directory, *key);
    held[*key] = HeldRun{.is_started = FileExists(directory.StepPath())};
  }
  state_ = Restore(std::move(held), *std::move(fences));
  return absl::OkStatus();
}

void Agent::Attach(const RunDirectory& directory, const RunKey& key) {
  for (const std::string& path : {directory.path(), directory.WitnessDirectory()}) {
    const absl::Status watched = watch_->Add(path);
    if (!watched.ok()) LOG(ERROR) << watched;  // ticks still look at it
  }
  runs_.try_emplace(key, directory, key, clock_);
}

void Agent::Loop(int stop_fd) {
  next_tick_ = clock_->Mono() + options_.tick;
  Feed(SyncFailed{});
  ObserveAll();
  while (!IsOver()) {
    WaitForSomething(stop_fd);
    ObserveChanges();
    for (Input& input : inbox_.TakeAll())
      Feed(std::move(input));
    KeepClockSamples();
    if (std::optional<CheckEnded> end = check_.TakeEnd(); end.has_value()) Feed(*std::move(end));
    if (std::optional<CacheSeen> seen = cache_.TakeEnd(); seen.has_value()) Feed(*std::move(seen));
    SettleIfDue();
    SalvageEnded();
    if (clock_->Mono() < next_tick_) continue;
    next_tick_ = clock_->Mono() + options_.tick;
    Feed(Tick{});
    FollowCache();
  }
}

// It is looked at while nobody measures anything on the node, and the end of an order is heard:
// what a look says takes the place of what was said of the order.
void Agent::FollowCache() {
  if (std::optional<CacheSeen> seen = cache_.TakeProgress(); seen.has_value())
    Feed(*std::move(seen));
  if (state_.runs.empty() && state_.check == 0 && state_.cache_order == 0 && !state_.is_leaving)
    cache_.LookIfDue(clock_->Mono());
}

void Agent::KeepClockSamples() {
  for (const ClockSample& sample : sync_->TakeClockSamples())
    for (auto& [key, run] : runs_)
      run.Keep(sample);
}

bool Agent::IsOver() const {
  const MonoTime now = clock_->Mono();
  if (is_lease_over_) return true;
  if (!leave_began_.has_value()) return is_refused_ || clock_->Wall() >= options_.renew_at;
  if (is_hurried_ || is_refused_ || now >= *leave_began_ + options_.deliver_timeout) {
    if (IsEnding(state_)) LOG(WARNING) << "leaves a run's end in the spool, undelivered";
    return true;
  }
  const bool is_heard = answered_call_ >= told_call_;
  if (!is_settled_) return false;
  // Who ends a job kills what has not left within seconds; a copy does not hurry.
  if (IsEnding(state_))
    return IsSalvaged() && failed_call_ >= told_call_ &&
           now >= *leave_began_ + options_.leave_timeout;
  if (told_.phase == Phase::kFinished) return is_heard;
  return is_heard || failed_call_ >= told_call_ || now >= told_at_ + options_.leave_timeout;
}

absl::Duration Agent::TimeLeft() const {
  const MonoTime now = clock_->Mono();
  MonoTime next = next_tick_;
  for (const auto& [key, run] : runs_)
    if (run.due().has_value()) next = std::min(next, *run.due());
  if (leave_began_.has_value()) {
    for (const MonoTime at :
         {*leave_began_ + options_.settle_time, *leave_began_ + options_.deliver_timeout,
          *leave_began_ + options_.leave_timeout, told_at_ + options_.leave_timeout})
      if (at > now) next = std::min(next, at);
  }
  return std::max(next - now, absl::ZeroDuration());
}

void Agent::WaitForSomething(int stop_fd) {
  std::vector<pollfd> entries{{inbox_.fd(), POLLIN, 0}, {watch_->fd(), POLLIN, 0}};
  for (const auto& [key, run] : runs_)
    if (run.exit_fd() >= 0) entries.push_back({run.exit_fd(), POLLIN, 0});
  if (check_.exit_fd() >= 0) entries.push_back({check_.exit_fd(), POLLIN, 0});
  if (cache_.exit_fd() >= 0) entries.push_back({cache_.exit_fd(), POLLIN, 0});
  entries.push_back({stop_fd, POLLIN, 0});
  const int64_t left_ms = absl::ToInt64Milliseconds(TimeLeft() + absl::Milliseconds(1));
  if (poll(entries.data(), entries.size(), static_cast<int>(left_ms)) <= 0) return;
  if (entries.back().revents != 0) NoteStop(stop_fd);
}

void Agent::NoteStop(int stop_fd) {
  std::array<char, sizeof(signalfd_siginfo)> message;
  if (read(stop_fd, message.data(), message.size()) <= 0) return;
  const MonoTime now = clock_->Mono();
  if (leave_began_.has_value()) {
    is_hurried_ = is_settled_;
    return;
  }
  leave_began_ = now;
  Feed(LeaveRequested{});
}

// What tells a node's whole job to end tells the steps, too.
void Agent::SettleIfDue() {
  if (!leave_began_.has_value() || is_settled_) return;
  if (IsExecuting(state_) && clock_->Mono() < *leave_began_ + options_.settle_time) return;
  is_settled_ = true;
  for (auto& [key, run] : runs_)
    run.LookForStop();
  ObserveAll();
  LOG(INFO) << "leaving; "
            << (IsEnding(state_)      ? "a run's end is delivered first"
                : IsExecuting(state_) ? "a running step goes on"
                                      : "no step runs");
}

// Whatever keeps the end from being delivered may outlast this node.
void Agent::SalvageEnded() {
  if (!leave_began_.has_value() || options_.salvage_directory.empty()) return;
  for (const auto& [key, run] : runs_) {
    if (!run.has_ended() || salvaged_.contains(key)) continue;
    std::vector<std::string> artifacts;
    if (run.recorder() != nullptr)
      for (const ArtifactFile& file : run.recorder()->Artifacts())
        artifacts.push_back(file.path);
    const absl::Status status = SalvageRun(run.directory(), artifacts, options_.salvage_directory);
    salvaged_[key] = status.ok();
    if (!status.ok()) LOG(ERROR) << "run=" << key.run << " is not salvaged: " << status;
  }
}

bool Agent::IsSalvaged() const {
  return std::all_of(runs_.begin(), runs_.end(), [this](const auto& entry) {
    const auto it = salvaged_.find(entry.first);
    return it != salvaged_.end() && it->second;
  });
}

void Agent::ObserveAll() {
  std::vector<RunKey> keys;
  for (const auto& [key, run] : runs_)
    keys.push_back(key);
  for (const RunKey& key : keys)
    Observe(key);
}

void Agent::ObserveChanges() {
  const std::set<std::string> changed = watch_->Changed();
  const bool is_tick = clock_->Mono() >= next_tick_;
  std::vector<RunKey> keys;
  for (const auto& [key, run] : runs_) {
    pollfd entry{run.exit_fd(), POLLIN, 0};
    const bool has_ended = run.exit_fd() >= 0 && poll(&entry, 1, 0) == 1;
    const bool is_due = run.due().has_value() && *run.due() <= clock_->Mono();
    const bool is_changed = changed.count(run.directory().path()) > 0 ||
                            changed.count(run.directory().WitnessDirectory()) > 0;
    if (is_tick || has_ended || is_due || is_changed) keys.push_back(key);
  }
  for (const RunKey& key : keys)
    Observe(key);
}

void Agent::Observe(const RunKey& key) {
  AttachedRun* run = FindRun(key);
  if (run == nullptr) return;
  if (run->IsWaitingForSource()) run->Start(options_.step_program, options_.rendezvous_listener_fd);
  Feed(run->Observe());
}

void Agent::Feed(Input input) {
  if (const auto* reply = std::get_if<SyncReply>(&input); reply != nullptr)
    answered_call_ = reply->call;
  if (const auto* failure = std::get_if<SyncFailed>(&input); failure != nullptr)
    failed_call_ = failure->call;
  inputs_.push_back(std::move(input));
  if (!is_feeding_) Drain();
}

// Actions may feed further inputs; they wait their turn.
void Agent::Drain() {
  is_feeding_ = true;
  while (!inputs_.empty()) {
    const Input input = std::move(inputs_.front());
    inputs_.pop_front();
    for (const Action& action : Advance(input, &state_))
      Execute(action);
  }
  is_feeding_ = false;
}

void Agent::Execute(const Action& action) {
  std::visit([this](const auto& a) { Do(a); }, action);
}

absl::Status Agent::Prepare(const StartStep& action) {
  v1::RunSpec spec;
  if (!spec.ParseFromString(action.spec)) return absl::InternalError("the run spec does not parse");
  ASSIGN_OR_RETURN(const RunDirectory directory,
                   RunDirectory::ForRun(options_.config.data_directory(), action.key));
  RETURN_IF_ERROR(MakeWorkload(spec, directory).status());
  RETURN_IF_ERROR(PrepareRun(directory, spec, options_.config, options_.system_description_json));
  Attach(directory, action.key);
  return absl::OkStatus();
}

void Agent::Do(const StartStep& action) {
  cache_.StopLook();
  if (FindRun(action.key) == nullptr) {
    const absl::Status prepared = Prepare(action);
    if (!prepared.ok()) {
      LOG(ERROR) << "run=" << action.key.run << " cannot start: " << prepared;
      const bool is_spec = prepared.code() == absl::StatusCode::kInvalidArgument;
      const ExitCode code = is_spec ? ExitCode::kBadSpec : ExitCode::kDisk;
      Feed(RunObserved{.key = action.key,
                       .exit = StepExit{static_cast<int>(code), std::string(prepared.message())},
                       .is_spool_complete = true});
      return;
    }
  }
  AttachedRun* run = FindRun(action.key);
  run->Start(options_.step_program, options_.rendezvous_listener_fd);
  if (run->IsWaitingForSource())
    fetcher_->Fetch(action.key, run->directory(), run->recorder()->spec().command().source());
  Feed(run->Observe());
}

void Agent::Do(const StopStep& action) {
  AttachedRun* run = FindRun(action.key);
  if (run == nullptr) return;
  fetcher_->Drop(action.key);
  run->Stop();
  Feed(run->Observe());
}

void Agent::Do(const GiveLeave& action) {
  const AttachedRun* run = FindRun(action.key);
  if (run == nullptr || FileExists(run->directory().LeavePath())) return;
  const absl::Status written = WriteFileAtomic(run->directory().LeavePath(), "");
  if (!written.ok()) LOG(ERROR) << "run=" << action.key.run << " " << written;
}

void Agent::Do(const StartCheck& action) {
  v1::PreflightSpec spec;
  if (!spec.ParseFromString(action.spec)) LOG(ERROR) << "the pre-flight's spec does not parse";
  cache_.StopLook();
  check_.Start(action.number, spec, options_.rendezvous_listener_fd);
}

void Agent::Do(const StopCheck&) {
  check_.Stop();
}

void Agent::Do(const StartCaching& action) {
  cache_.Start(action.number, action.spec);
}

void Agent::Do(const StopCaching&) {
  cache_.Stop();
}

void Agent::Do(const Synchronize& action) {
  v1::SynchronizeRequest request;
  request.set_worker(absl::StrCat("workers/", options_.config.name()));
  request.set_incarnation(options_.incarnation);
  *request.mutable_status() = ToProto(action.status);
  *request.mutable_capabilities() = options_.capabilities;
  *request.mutable_labels() = options_.config.labels();
  request.set_system_description_json(options_.system_description_json);
  request.set_is_leaving(action.status.is_leaving);
  request.set_version(options_.version);
  absl::Duration wait = action.status.is_leaving ? absl::ZeroDuration() : options_.poll_timeout;
  if (action.status.phase == Phase::kExecuting) {
    wait = std::min(wait, kExecutingInterval);
    TellFigures(action.status.key, &request);
  }
  request.mutable_poll_timeout()->set_seconds(absl::ToInt64Seconds(wait));
  const int64_t call = sync_->Call(std::move(request));
  if (told_call_ != 0 && action.status == told_) return;
  told_ = action.status;
  told_at_ = clock_->Mono();
  told_call_ = call;
}

// Beside the status, whose change would end the call under way.
void Agent::TellFigures(const RunKey& key, v1::SynchronizeRequest* request) {
  const AttachedRun* run = FindRun(key);
  if (run == nullptr || run->has_ended()) return;
  std::optional<v1::NodeFigures> figures =
      ReadNodeFigures(run->directory(), run->recorder(), ReadClocks().NodeNs(),
                      options_.capabilities.memory_bytes());
  if (figures.has_value()) *request->mutable_figures() = *std::move(figures);
}

void Agent::Do(const SendEvents& action) {
  AttachedRun* run = FindRun(action.key);
  if (run == nullptr || run->recorder() == nullptr) return;
  courier_->DeliverEvents(action.key, run->recorder()->node_rank(), run->recorder()->spool());
}

void Agent::Do(const UploadArtifacts& action) {
  AttachedRun* run = FindRun(action.key);
  if (run == nullptr || run->recorder() == nullptr) return;
  std::vector<ArtifactFile> files = run->recorder()->Artifacts();
  const std::set<std::string> wanted(action.file_names.begin(), action.file_names.end());
  files.erase(std::remove_if(files.begin(), files.end(),
                             [&](const ArtifactFile& f) { return wanted.count(f.name) == 0; }),
              files.end());
  courier_->DeliverFiles(action.key, files);
}

// The fence first: files that outlive it only take up room until the next start finds them.
void Agent::Do(const ForgetRun& action) {
  courier_->Drop(action.key);
  fetcher_->Drop(action.key);
  absl::Status status = StoreFences(FencesPath(), state_.fences);
  const AttachedRun* run = FindRun(action.key);
  if (run != nullptr && status.ok()) {
    status = RemoveTree(run->directory().StagePath(options_.config.stage_directory()));
    if (status.ok()) status = RemoveTree(run->directory().path());
  }
  if (!status.ok()) LOG(ERROR) << "run=" << action.key.run << " is not forgotten: " << status;
  runs_.erase(action.key);
  LOG(INFO) << "forgot run=" << action.key.run << " generation=" << action.key.generation;
}

}  // namespace assay::agent
