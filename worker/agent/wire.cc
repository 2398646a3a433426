#include "worker/agent/wire.h"

namespace assay::agent {
namespace {

v1::WorkerStatus::Phase ToProto(Phase phase) {
  switch (phase) {
    case Phase::kIdle:
      return v1::WorkerStatus::IDLE;
    case Phase::kExecuting:
      return v1::WorkerStatus::EXECUTING;
    case Phase::kFinished:
      return v1::WorkerStatus::FINISHED;
  }
  return v1::WorkerStatus::PHASE_UNSPECIFIED;
}

// The report is this message, written by CacheProcess; what it says of an earlier order is not of
// this one.
v1::CacheReport CacheReportOf(const Status& status) {
  v1::CacheReport report;
  report.ParseFromString(status.cache_report.value_or(""));
  if (report.number() != status.cache_order) {
    report.clear_problem();
    report.clear_is_temporary();
    report.clear_files();
    report.clear_files_total();
    report.clear_bytes();
    report.clear_bytes_total();
  }
  report.set_number(status.cache_order);
  report.set_is_done(status.is_cache_done);
  return report;
}

}  // namespace

v1::WorkerStatus ToProto(const Status& status) {
  v1::WorkerStatus proto;
  proto.set_phase(ToProto(status.phase));
  proto.set_run(status.key.run);
  proto.set_generation(status.key.generation);
  proto.set_exit_code(status.exit.code);
  proto.set_reason(status.exit.reason);
  proto.set_is_ready(status.is_ready);
  proto.set_has_leave_to_start(status.has_leave_to_start);
  if (status.check != 0) {
    // The result is this message, written by CheckProcess.
    if (status.check_result.has_value())
      proto.mutable_preflight()->ParseFromString(*status.check_result);
    proto.mutable_preflight()->set_number(status.check);
    proto.mutable_preflight()->set_is_done(status.check_result.has_value());
  }
  if (status.cache_report.has_value() || status.cache_order != 0)
    *proto.mutable_cache() = CacheReportOf(status);
  for (const UploadedFile& file : status.artifacts) {
    if (file.sha256.empty()) continue;  // the coordinator keeps another, or none
    v1::ArtifactRef* ref = proto.add_artifacts();
    ref->set_file_name(file.file_name);
    ref->set_sha256(file.sha256);
    ref->set_size_bytes(file.size_bytes);
  }
  return proto;
}

std::optional<Desired> FromProto(const v1::DesiredState& desired) {
  Desired result;
  result.key = RunKey{desired.run(), desired.generation()};
  result.cache_order = desired.cache_order().number();
  if (result.cache_order != 0) result.cache_spec = desired.cache_order().SerializeAsString();
  switch (desired.action()) {
    case v1::DesiredState::IDLE:
      result.order = Order::kIdle;
      return result;
    case v1::DesiredState::EXECUTE:
      result.order = Order::kExecute;
      result.spec = desired.spec().SerializeAsString();
      result.may_start = desired.may_start();
      return result;
    case v1::DesiredState::STOP:
      result.order = Order::kStop;
      return result;
    case v1::DesiredState::FORGET:
      result.order = Order::kForget;
      return result;
    case v1::DesiredState::CHECK:
      result.order = Order::kCheck;
      result.spec = desired.preflight().SerializeAsString();
      return result;
    default:  // an open enum: a newer coordinator may know more
      return std::nullopt;
  }
}

}  // namespace assay::agent
