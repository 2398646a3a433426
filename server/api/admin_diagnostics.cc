// What is asked of a coordinator to find out what is wrong with it.

#include <utility>

#include "common/status.h"
#include "server/api/admin_service.h"
#include "server/core/query.h"

namespace assay::api {
namespace {

constexpr absl::string_view kGetDiagnostics = "assay.v1.AdminService/GetDiagnostics";

}  // namespace

grpc::ServerUnaryReactor* AdminService::GetDiagnostics(grpc::CallbackServerContext* context,
                                                       const v1::GetDiagnosticsRequest* request,
                                                       v1::Diagnostics* response) {
  const auto call = StartUnary(context, response);
  const absl::Status status = Admit(*backend_, *context, kGetDiagnostics, *request).status();
  if (!status.ok()) {
    call.Finish(status);
    return call.reactor;
  }
  backend_->upkeep->Diagnose(request->is_database_checked(),
                             [this, call](const absl::StatusOr<core::StoreDiagnosis>& diagnosis) {
                               if (!diagnosis.ok()) return call.Finish(diagnosis.status());
                               v1::Diagnostics* const message = call.response;
                               message->set_configuration(backend_->configuration);
                               for (const std::string& field : backend_->configuration_left_out)
                                 message->add_left_out(field);
                               message->set_schema_version(diagnosis->schema_version);
                               for (const std::string& problem : diagnosis->problems)
                                 message->add_database_problems(problem);
                               message->set_is_database_checked(diagnosis->is_checked);
                               if (backend_->metrics_text)
                                 message->set_metrics(backend_->metrics_text());
                               call.Finish(absl::OkStatus());
                             });
  return call.reactor;
}

}  // namespace assay::api
