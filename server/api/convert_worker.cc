#include "server/api/convert_worker.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"

#include "common/rpc/finding_proto.h"
#include "common/status.h"
#include "server/api/convert.h"
#include "server/api/names.h"
#include "server/api/proto_archive.h"
#include "server/core/description.h"
#include "server/core/node_figures.h"

namespace assay::api {
namespace {

constexpr int64_t kPollMaxUs = 20'000'000;
// Compute nodes of a gang start their trainers within seconds; evaluation steps of the largest
// models keep a rank silent for minutes.
constexpr int64_t kCollectiveTimeoutMs = 10LL * 60 * 1000;

core::FabricReport ReadFabric(const v1::FabricReport& message) {
  core::FabricReport fabric{
      .all_reduce_us = message.all_reduce_us(),
      .all_reduce_gb_per_s = message.all_reduce_gb_per_s(),
      .absent_ranks = {message.absent_ranks().begin(), message.absent_ranks().end()},
      .error = message.error()};
  for (const v1::FabricLink& link : message.links())
    fabric.links.push_back({.latency_us = link.latency_us(), .gb_per_s = link.gb_per_s()});
  return fabric;
}

core::PreflightReport ReadPreflight(const v1::PreflightReport& message) {
  core::PreflightReport report{.number = message.number(), .is_done = message.is_done()};
  for (const v1::NodeCheck& check : message.checks())
    report.checks.push_back({.check = check.check(),
                             .is_measured = check.is_measured(),
                             .value = check.value(),
                             .unit = check.unit(),
                             .detail = check.detail(),
                             .problem = check.problem()});
  if (message.has_fabric()) report.fabric = ReadFabric(message.fabric());
  return report;
}

core::CacheReport ReadCache(const v1::CacheReport& message) {
  core::CacheReport report{.number = message.number(),
                           .is_done = message.is_done(),
                           .problem = message.problem(),
                           .files = message.files(),
                           .files_total = message.files_total(),
                           .bytes = message.bytes(),
                           .bytes_total = message.bytes_total(),
                           .look_problem = message.look_problem(),
                           .is_temporary = message.is_temporary()};
  for (const v1::CachedDataset& dataset : message.datasets())
    report.datasets.push_back({.digest = dataset.digest(),
                               .name = dataset.name(),
                               .files = dataset.files(),
                               .files_total = dataset.files_total(),
                               .bytes = dataset.bytes(),
                               .bytes_total = dataset.bytes_total(),
                               .is_pinned = dataset.is_pinned(),
                               .is_in_use = dataset.is_in_use()});
  return report;
}

v1::PreflightSpec SpecOf(const core::PreflightOrder& order) {
  v1::PreflightSpec message;
  message.mutable_checks()->Add(order.checks.begin(), order.checks.end());
  message.set_dataset_path(order.dataset_path);
  message.set_is_staged(order.is_staged);
  message.mutable_time_limit()->set_seconds(order.time_limit_us / 1'000'000);
  if (!order.fabric.has_value()) return message;
  v1::FabricSpec& fabric = *message.mutable_fabric();
  fabric.set_name(order.fabric->name);
  fabric.set_rank(order.fabric->rank);
  fabric.set_node_count(order.fabric->node_count);
  fabric.set_rendezvous_address(order.fabric->rendezvous_address);
  fabric.set_token(order.fabric->token);
  *fabric.mutable_time_limit() = message.time_limit();
  return message;
}

absl::StatusOr<core::WorkerReport> ReadStatus(const v1::WorkerStatus& status) {
  core::WorkerReport report{.preflight = ReadPreflight(status.preflight())};
  if (status.has_cache()) report.cache = ReadCache(status.cache());
  switch (status.phase()) {
    case v1::WorkerStatus::IDLE:
      return report;
    case v1::WorkerStatus::EXECUTING:
      report.phase = core::WorkerPhase::kExecuting;
      break;
    case v1::WorkerStatus::FINISHED:
      report.phase = core::WorkerPhase::kFinished;
      break;
    default:
      return absl::InvalidArgumentError(
          "status.phase is not set: send IDLE, EXECUTING or FINISHED");
  }
  ASSIGN_OR_RETURN(report.run, ParseRunName(status.run()));
  report.generation = status.generation();
  report.exit_code = status.exit_code();
  report.reason = status.reason();
  for (const v1::ArtifactRef& artifact : status.artifacts())
    report.artifacts.push_back(FromProto(artifact));
  report.is_ready = status.is_ready();
  report.has_leave_to_start = status.has_leave_to_start();
  return report;
}

absl::StatusOr<core::RunEventKind> ReadKind(v1::RunEvent::Kind kind) {
  switch (kind) {
    case v1::RunEvent::LOG_LINE:
      return core::RunEventKind::kLogLine;
    case v1::RunEvent::FIRST_TOUCH:
      return core::RunEventKind::kFirstTouch;
    case v1::RunEvent::FINDING:
      return core::RunEventKind::kFinding;
    case v1::RunEvent::PROGRESS:
      return core::RunEventKind::kProgress;
    default:
      return absl::InvalidArgumentError(absl::StrCat("unknown kind of event: ", kind));
  }
}

absl::StatusOr<core::RunEvent> ReadEvent(const v1::RunEvent& event) {
  core::RunEvent value;
  ASSIGN_OR_RETURN(value.kind, ReadKind(event.kind()));
  value.seq = event.seq();
  value.text = event.text();
  value.wall_us = event.wall_us();
  value.mono_ns = event.mono_ns();
  value.line = event.line();
  value.is_attributed = event.is_attributed();
  if (event.has_finding()) value.finding = FindingFromProto(event.finding());
  return value;
}

v1::DatasetSpec DatasetOf(const core::RunOrder& order) {
  v1::DatasetSpec message;
  message.set_id(order.dataset.id);
  message.set_path(order.dataset.path);
  message.set_digest(order.dataset.digest);
  message.set_train_sample_count(order.dataset.train_sample_count);
  message.set_eval_sample_count(order.dataset.eval_sample_count);
  message.set_compression(order.dataset.compression);
  message.mutable_parameters()->insert(order.dataset.parameters.begin(),
                                       order.dataset.parameters.end());
  return message;
}

void SetIdentity(const core::RunOrder& order, v1::RunSpec* message) {
  message->set_organization(order.spec.organization);
  message->set_system(order.spec.system);
  message->set_division(order.spec.division);
  message->set_status(order.spec.status);
  message->set_benchmark(order.spec.benchmark);
  message->set_round(order.spec.round);
  for (const core::Hyperparameter& parameter : order.spec.hyperparameters)
    *message->add_hyperparameters() = Described<v1::Hyperparameter>(parameter);
}

void SetWorkload(const core::RunOrder& order, v1::RunSpec* message) {
  if (const auto* trainer = std::get_if<core::TrainerWorkload>(&order.spec.workload)) {
    *message->mutable_trainer() = ToProto(*trainer);
    return;
  }
  *message->mutable_command() =
      Described<v1::CommandWorkload>(std::get<core::CommandWorkload>(order.spec.workload));
  message->mutable_hosts()->Add(order.hosts.begin(), order.hosts.end());
  message->mutable_node_names()->Add(order.node_names.begin(), order.node_names.end());
  message->set_program_port(order.program_port);
}

}  // namespace

v1::Worker ToProto(const core::Worker& worker, const core::Presence& presence) {
  v1::Worker message = Described<v1::Worker>(worker);
  if (presence.last_seen_us != 0) SetTime(presence.last_seen_us, message.mutable_last_seen_time());
  if (presence.certificate_end_us != 0)
    SetTime(presence.certificate_end_us, message.mutable_certificate_end_time());
  message.set_clock_offset_us(presence.clock_offset_us);
  message.set_clock_offset_uncertainty_us(presence.clock_offset_uncertainty_us);
  if (const auto& cache = presence.report.cache; cache.has_value())
    *message.mutable_cache() = Described<v1::CacheReport>(*cache);
  if (presence.figures.has_value())
    *message.mutable_figures() = Described<v1::NodeFigures>(*presence.figures);
  return message;
}

v1::Capabilities ToProto(const core::Capabilities& capabilities) {
  return Described<v1::Capabilities>(capabilities);
}

absl::StatusOr<core::Synchronize> FromProto(const v1::SynchronizeRequest& request) {
  core::Synchronize command;
  ASSIGN_OR_RETURN(command.worker, ParseWorkerName(request.worker()));
  if (request.incarnation().empty())
    return absl::InvalidArgumentError("incarnation is empty: choose a UUID at each start");
  ASSIGN_OR_RETURN(command.description, ReadDescribed<core::WorkerDescription>(request, ""));
  command.description.incarnation = request.incarnation();
  ASSIGN_OR_RETURN(command.report, ReadStatus(request.status()));
  command.clock_offset_us = request.clock_offset_us();
  command.clock_offset_uncertainty_us = request.clock_offset_uncertainty_us();
  command.is_leaving = request.is_leaving();
  if (request.has_figures()) {
    ASSIGN_OR_RETURN(command.figures,
                     ReadDescribed<core::NodeFigures>(request.figures(), "figures"));
  }
  const int64_t poll_s = std::clamp<int64_t>(request.poll_timeout().seconds(), 0, 20);
  const int64_t poll_us = poll_s * 1'000'000 + request.poll_timeout().nanos() / 1000;
  command.poll_timeout_us = std::clamp<int64_t>(poll_us, 0, kPollMaxUs);
  return command;
}

v1::DesiredState ToProto(const core::Desired& desired) {
  v1::DesiredState message;
  message.set_run(NameOf(desired.run));
  message.set_generation(desired.generation);
  switch (desired.action) {
    case core::DesiredAction::kIdle:
      message.set_action(v1::DesiredState::IDLE);
      break;
    case core::DesiredAction::kExecute:
      message.set_action(v1::DesiredState::EXECUTE);
      break;
    case core::DesiredAction::kStop:
      message.set_action(v1::DesiredState::STOP);
      break;
    case core::DesiredAction::kForget:
      message.set_action(v1::DesiredState::FORGET);
      break;
    case core::DesiredAction::kCheck:
      message.set_action(v1::DesiredState::CHECK);
      break;
  }
  message.set_may_start(desired.may_start);
  if (desired.cache.has_value())
    *message.mutable_cache_order() = Described<v1::CacheOrder>(*desired.cache);
  if (desired.checks.has_value()) *message.mutable_preflight() = SpecOf(*desired.checks);
  if (desired.order.has_value())
    *message.mutable_spec() = ToProto(*desired.order, desired.run, desired.generation);
  return message;
}

v1::RunSpec ToProto(const core::RunOrder& order, core::RunId run, int64_t generation) {
  v1::RunSpec message;
  message.set_run(NameOf(run));
  message.set_run_number(order.run_number);
  message.set_generation(generation);
  message.set_submission(NameOf(order.submission));
  SetIdentity(order, &message);
  message.set_seed(order.seed);
  SetWorkload(order, &message);
  message.set_epoch_count_max(order.spec.epoch_count_max);
  message.set_quality_target(order.rules.quality_target);
  message.set_quality_key(order.rules.quality_key);
  message.set_is_staging_timed(order.rules.is_staging_timed);
  message.set_init_limit_ms(order.rules.init_limit_ms);
  message.mutable_fixed()->insert(order.rules.fixed.begin(), order.rules.fixed.end());
  *message.mutable_dataset() = DatasetOf(order);
  message.mutable_dataset()->set_is_staged(order.spec.staging == "node");
  message.set_node_rank(order.node_rank);
  message.set_node_count(order.spec.node_count);
  message.set_ranks_per_node(order.spec.ranks_per_node);
  message.set_rendezvous_address(order.rendezvous_address);
  message.set_rendezvous_token(order.rendezvous_token);
  message.set_collective_timeout_ms(kCollectiveTimeoutMs);
  message.set_run_timeout_ms(order.spec.run_timeout_ms);
  message.set_is_start_awaited(core::IsThroughput(order.spec));
  message.set_rule_set_toml(order.rules.rule_set_toml);
  if (order.preflight) *message.mutable_preflight() = Described<v1::Preflight>(*order.preflight);
  return message;
}

absl::StatusOr<core::AppendRunEvents> FromProto(const v1::EventBatch& batch) {
  core::AppendRunEvents command;
  ASSIGN_OR_RETURN(command.run, ParseRunName(batch.run()));
  command.generation = batch.generation();
  command.node_rank = batch.node_rank();
  command.events.reserve(static_cast<size_t>(batch.events_size()));
  for (const v1::RunEvent& event : batch.events()) {
    ASSIGN_OR_RETURN(core::RunEvent value, ReadEvent(event));
    const int64_t expected =
        command.events.empty() ? std::max<int64_t>(1, value.seq) : command.events.back().seq + 1;
    if (value.seq != expected) {
      return absl::InvalidArgumentError(
          absl::StrCat("event seq ", value.seq, " follows ", expected - 1, " within a batch of ",
                       batch.run(), ": send consecutive seqs from 1"));
    }
    command.events.push_back(std::move(value));
  }
  return command;
}

}  // namespace assay::api
