#include "cli/command/context.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "cli/command/settings.h"
#include "common/client/certificate.h"
#include "common/client/endpoints.h"
#include "common/printable.h"
#include "common/status.h"

namespace assay::cli {

void Context::Note(absl::string_view text) const {
  if (!is_quiet_) *env_->err << text << "\n" << std::flush;
}

void Context::Warn(absl::string_view text) const {
  *env_->err << "assay: warning: " << text << "\n" << std::flush;
}

absl::StatusOr<client::Client*> Context::Connect() {
  if (client_ == nullptr) {
    ASSIGN_OR_RETURN(Endpoint endpoint,
                     client::ResolveEndpoint(EndpointSettingsOf(*env_, config_)));
    ASSIGN_OR_RETURN(endpoint, client::WithCertificate(env_->UserCacheDirectory(),
                                                       env_->clock->Wall(), std::move(endpoint)));
    ASSIGN_OR_RETURN(client_, client::Client::Connect(endpoint));
  }
  return client_.get();
}

void ProgressLine::Draw(absl::string_view text) {
  if (!context_->CanRedraw()) return;
  Clear();
  *context_->env().err << Truncate(Printable(text), context_->env().width - 1,
                                   context_->style().is_utf8())
                       << std::flush;
  is_drawn_ = true;
}

void ProgressLine::Clear() {
  if (is_drawn_) *context_->env().raw_err << "\r\033[K" << std::flush;
  is_drawn_ = false;
}

std::string ProgressBar(int64_t done, int64_t total, int width, bool is_utf8) {
  const int64_t filled = total <= 0 ? 0 : std::clamp<int64_t>(done * width / total, 0, width);
  std::string bar = "[";
  for (int64_t i = 0; i < width; ++i)
    absl::StrAppend(&bar, i < filled ? (is_utf8 ? "━" : "#") : (is_utf8 ? "·" : "."));
  return absl::StrCat(bar, "]");
}

}  // namespace assay::cli
