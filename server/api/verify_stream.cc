#include "server/api/verify_stream.h"

#include <utility>

#include "server/api/convert.h"
#include "server/api/pull_stream.h"

namespace assay::api {
namespace {

class VerificationStream final : public PullStream<v1::VerifyStoreResponse> {
 public:
  VerificationStream(const Backend* backend, const std::string& backup_directory)
      : PullStream(/*follow=*/false),
        backend_(backend),
        verification_(backend->verifications->Begin(backup_directory)) {}

 protected:
  void Fetch(Fetched fetched) override {
    backend_->verifications->Next(verification_,
                                  [this, fetched = std::move(fetched)](
                                      absl::StatusOr<runtime::Verifications::Step> step) mutable {
                                    if (!step.ok()) return fetched(step.status());
                                    Page page;
                                    for (const core::StoredFault& fault : step->faults)
                                      page.messages.push_back(ToProto(fault));
                                    fault_count_ += std::ssize(step->faults);
                                    page.is_end = step->is_last;
                                    if (page.is_end)
                                      page.messages.push_back(ToProto(step->counts, fault_count_));
                                    fetched(std::move(page));
                                  });
  }

 private:
  const Backend* const backend_;
  const runtime::Verifications::Verification verification_;
  int64_t fault_count_ = 0;  // one fetch at a time touches it
};

}  // namespace

grpc::ServerWriteReactor<v1::VerifyStoreResponse>* NewVerification(
    const Backend* backend, const absl::Status& admitted, const v1::VerifyStoreRequest& request) {
  if (!admitted.ok()) return new RefusedStream<v1::VerifyStoreResponse>(admitted);
  auto* const stream = new VerificationStream(backend, request.backup_directory());
  stream->Start();
  return stream;
}

}  // namespace assay::api
