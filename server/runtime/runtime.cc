#include "server/runtime/runtime.h"

#include <algorithm>
#include <utility>

#include "absl/time/time.h"

#include "common/log.h"
#include "common/status.h"
#include "server/runtime/compressor.h"
#include "server/runtime/judge_result.h"
#include "server/store/artifacts.h"
#include "server/store/compression.h"
#include "server/store/data_directory.h"
#include "server/store/history_reader.h"
#include "server/store/reader.h"
#include "server/store/store.h"

namespace assay::runtime {

// In order of construction; destroyed in reverse.
struct Runtime::Parts {
  store::DataDirectory directory;
  std::unique_ptr<RuleBook> rules;
  std::unique_ptr<store::ArtifactStore> artifacts;
  std::unique_ptr<store::Store> store;
  std::unique_ptr<store::Checkpointer> checkpointer;
  Watchers watchers;
  TokenTable tokens;
  CertificateTable certificates;
  std::unique_ptr<Queries> queries;
  std::unique_ptr<Uploads> uploads;
  std::unique_ptr<SilenceWatch> silences;
  std::unique_ptr<Verifications> verifications;
  std::unique_ptr<Upkeep> upkeep;
  std::unique_ptr<Effects> effects;
  std::unique_ptr<CoreThread> core;
  std::unique_ptr<Compressor> compressor;  // null: what has ended stays as it is
};

absl::StatusOr<std::unique_ptr<Runtime>> Runtime::Open(const Clock* clock, RuntimeOptions options) {
  auto parts = std::make_unique<Parts>();
  ASSIGN_OR_RETURN(parts->directory, store::DataDirectory::Open(options.data_directory));
  ASSIGN_OR_RETURN(parts->artifacts, store::ArtifactStore::Open(parts->directory.artifacts_path()));
  const std::string database = parts->directory.database_path();
  ASSIGN_OR_RETURN(
      parts->store,
      store::Store::Open(database, {.is_database_expected = parts->directory.is_database_expected(),
                                    .is_loss_accepted = options.is_loss_accepted,
                                    .now_us = absl::ToUnixMicros(clock->Wall())}));
  // Kept before anything can be accepted by them.
  ASSIGN_OR_RETURN(const store::Store::RulePacks kept, parts->store->LoadRulePacks());
  ASSIGN_OR_RETURN(parts->rules, LoadRuleBook(options.round_paths, kept));
  RETURN_IF_ERROR(parts->store->KeepRulePacks(parts->rules->Packs()));
  ASSIGN_OR_RETURN(parts->checkpointer, store::Checkpointer::Open(database));
  ASSIGN_OR_RETURN(core::State state, parts->store->Load());
  ASSIGN_OR_RETURN(std::unique_ptr<store::Reader> lookups, store::Reader::Open(database));
  ASSIGN_OR_RETURN(std::unique_ptr<store::Reader> bulk, store::Reader::Open(database));
  Queries::HistoryReaders history;
  for (std::unique_ptr<store::HistoryReader>& reader : history) {
    ASSIGN_OR_RETURN(reader, store::HistoryReader::Open(database, clock));
  }
  parts->queries = std::make_unique<Queries>(std::move(lookups), std::move(bulk),
                                             std::move(history), parts->artifacts.get());
  parts->uploads = std::make_unique<Uploads>(parts->artifacts.get());
  parts->silences = std::make_unique<SilenceWatch>(clock);
  parts->verifications = std::make_unique<Verifications>(options.data_directory);
  parts->upkeep = std::make_unique<Upkeep>(options.data_directory, clock);
  ASSIGN_OR_RETURN(std::unique_ptr<store::Reader> effects_reader, store::Reader::Open(database));
  parts->effects = std::make_unique<Effects>(
      EffectHandler(std::make_unique<RuleJudge>(parts->rules.get(), parts->artifacts.get(),
                                                std::move(options.switches)),
                    std::move(effects_reader)));
  parts->directory.KeepBallast();
  LOG(INFO) << "recovered submissions=" << state.submissions.size() << " runs=" << state.runs.size()
            << " workers=" << state.workers.size() << " last_seq=" << state.last_seq;

  core::Policy policy = std::move(options.policy);
  ASSIGN_OR_RETURN(policy.secret, parts->directory.Secret());
  core::Core core(std::move(policy), std::move(state), absl::ToUnixMicros(clock->Wall()));
  parts->core = std::make_unique<CoreThread>(
      CoreThread::Parts{clock, parts->store.get(), &parts->watchers, &parts->tokens,
                        &parts->certificates, options.observer},
      parts->checkpointer.get(), std::move(core),
      [effects = parts->effects.get()](std::vector<core::Effect> outstanding) {
        effects->Run(std::move(outstanding));
      },
      options.core_thread);
  parts->effects->SetPost([core = parts->core.get()](core::Command command) {
    core->Post(std::move(command), [](const absl::StatusOr<core::Reply>& reply) {
      if (!reply.ok()) LOG(WARNING) << "own command refused status=" << Quoted(reply.status());
    });
  });
  if (options.is_compressing) {
    ASSIGN_OR_RETURN(auto compression, store::Compression::Open(options.data_directory));
    parts->compressor = std::make_unique<Compressor>(std::move(compression));
  }
  parts->core->Start();
  return std::unique_ptr<Runtime>(new Runtime(std::move(parts)));
}

Runtime::Runtime(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Runtime::~Runtime() {
  Stop();
}

void Runtime::Stop() {
  // The core first: its last commit needs no one. Effects that it has asked for are derived anew at
  // the next start.
  parts_->core->Stop();
  if (parts_->compressor != nullptr) parts_->compressor->Stop();
  parts_->effects->Stop();
  parts_->uploads->Stop();
  parts_->verifications->Stop();
  parts_->upkeep->Stop();
  parts_->queries->Stop();
}

void Runtime::StartLaunching(launch::Launcher* launcher, core::LauncherStarted started) {
  parts_->effects->StartLaunching(launcher, std::move(started));
}
void Runtime::StopLaunching() {
  parts_->effects->StopLaunching();
}

CoreThread& Runtime::core() {
  return *parts_->core;
}
Queries& Runtime::queries() {
  return *parts_->queries;
}
Uploads& Runtime::uploads() {
  return *parts_->uploads;
}
SilenceWatch& Runtime::silences() {
  return *parts_->silences;
}
Verifications& Runtime::verifications() {
  return *parts_->verifications;
}
Upkeep& Runtime::upkeep() {
  return *parts_->upkeep;
}
Watchers& Runtime::watchers() {
  return parts_->watchers;
}
const TokenTable& Runtime::tokens() const {
  return parts_->tokens;
}
const CertificateTable& Runtime::certificates() const {
  return parts_->certificates;
}
const RuleBook& Runtime::rules() const {
  return *parts_->rules;
}

std::string Runtime::database_path() const {
  return parts_->directory.database_path();
}

}  // namespace assay::runtime
