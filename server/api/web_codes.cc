#include "server/api/web_codes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/strip.h"

#include "common/secret.h"

namespace assay::api {
namespace {

// A code is no token, and must not look like one to whoever searches for leaks.
constexpr absl::string_view kSecretPrefix = "assay_";

}  // namespace

std::string WebCodes::Create(const auth::Identity& identity) {
  const std::string code(absl::StripPrefix(MakeToken(), kSecretPrefix));
  const MutexLock lock(&mutex_);
  MakeRoom(identity.principal);
  entries_.push_back({.sha256 = TokenHash(code), .identity = identity, .made_at = clock_->Mono()});
  return code;
}

std::optional<auth::Identity> WebCodes::Redeem(const std::string& code) {
  const std::string sha256 = TokenHash(code);
  const MutexLock lock(&mutex_);
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.sha256 == sha256; });
  if (found == entries_.end()) return std::nullopt;
  const Entry entry = std::move(*found);
  entries_.erase(found);
  if (clock_->Mono() - entry.made_at > kLifetime) return std::nullopt;
  return entry.identity;
}

void WebCodes::MakeRoom(const std::string& principal) {
  const MonoTime now = clock_->Mono();
  entries_.remove_if([&](const Entry& entry) { return now - entry.made_at > kLifetime; });
  const auto is_of = [&](const Entry& entry) { return entry.identity.principal == principal; };
  if (std::count_if(entries_.begin(), entries_.end(), is_of) >=
      static_cast<int64_t>(kOfPrincipalMax))
    entries_.erase(std::find_if(entries_.begin(), entries_.end(), is_of));
  if (entries_.size() >= kAllMax) entries_.pop_front();
}

}  // namespace assay::api
