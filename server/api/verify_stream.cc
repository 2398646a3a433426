#include "server/api/verify_stream.h"

#include <utility>

#include "server/api/pull_stream.h"

namespace assay::api {
namespace {

v1::VerifyStoreResponse FaultMessage(const core::StoredFault& fault) {
  v1::VerifyStoreResponse response;
  response.mutable_fault()->set_file(fault.file);
  response.mutable_fault()->set_object(fault.object);
  response.mutable_fault()->set_problem(fault.problem);
  return response;
}

v1::VerifyStoreResponse SummaryMessage(const core::VerifyCounts& counts, int64_t fault_count) {
  v1::VerifyStoreResponse response;
  v1::VerifySummary* const summary = response.mutable_summary();
  summary->set_fault_count(fault_count);
  summary->set_page_count(counts.page_count);
  summary->set_frame_count(counts.frame_count);
  summary->set_event_count(counts.event_count);
  summary->set_line_count(counts.line_count);
  summary->set_artifact_count(counts.artifact_count);
  return response;
}

class VerificationStream final : public PullStream<v1::VerifyStoreResponse> {
 public:
  explicit VerificationStream(const Backend* backend)
      : PullStream(/*follow=*/false),
        backend_(backend),
        verification_(backend->verifications->Begin()) {}

 protected:
  void Fetch(Fetched fetched) override {
    backend_->verifications->Next(
        verification_, [this, fetched = std::move(fetched)](
                           absl::StatusOr<runtime::Verifications::Step> step) mutable {
          if (!step.ok()) return fetched(step.status());
          Page page;
          for (const core::StoredFault& fault : step->faults)
            page.messages.push_back(FaultMessage(fault));
          fault_count_ += std::ssize(step->faults);
          page.is_end = step->is_last;
          if (page.is_end) page.messages.push_back(SummaryMessage(step->counts, fault_count_));
          fetched(std::move(page));
        });
  }

 private:
  const Backend* const backend_;
  const runtime::Verifications::Verification verification_;
  int64_t fault_count_ = 0;  // one fetch at a time touches it
};

}  // namespace

grpc::ServerWriteReactor<v1::VerifyStoreResponse>* NewVerification(const Backend* backend,
                                                                   const absl::Status& admitted) {
  auto* const stream = new VerificationStream(backend);
  if (admitted.ok())
    stream->Start();
  else
    stream->Refuse(admitted);
  return stream;
}

}  // namespace assay::api
