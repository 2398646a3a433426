#include "server/runtime/verifications.h"

#include <utility>

#include "server/runtime/score_check.h"
#include "server/store/backup_restore.h"
#include "server/store/verify.h"

namespace assay::runtime {
namespace {

// Verifications that take turns.
constexpr size_t kVerificationsMax = 8;

}  // namespace

Verifications::Verifications(std::string data_directory)
    : data_directory_(std::move(data_directory)), thread_("verify", kVerificationsMax) {}

Verifications::~Verifications() {
  Stop();
}

void Verifications::Stop() {
  thread_.Stop();
}

Verifications::Verification Verifications::Begin(const std::string& backup_directory) const {
  if (!backup_directory.empty())
    return std::make_shared<store::BackupVerifier>(backup_directory, MakeScoreCheck());
  return std::make_shared<store::Verifier>(data_directory_, MakeScoreCheck());
}

void Verifications::Next(Verification verification, Callback callback) {
  // Shared between the task and the refusal, of which only one happens.
  auto shared = std::make_shared<Callback>(std::move(callback));
  const bool is_taken = thread_.Post([verification = std::move(verification), shared] {
    Step step;
    step.faults = verification->Step();
    step.counts = verification->counts();
    step.is_last = verification->is_done();
    (*shared)(std::move(step));
  });
  if (!is_taken)
    (*shared)(absl::ResourceExhaustedError("too many verifications are under way; retry later"));
}

}  // namespace assay::runtime
