#include "server/web/sessions.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "common/log.h"
#include "common/secret.h"

namespace assay::web {
namespace {

constexpr size_t kCookieBytes = 16;
constexpr size_t kKeyBytes = 32;
constexpr size_t kCodeBytes = 32;  // SHA-256

std::string Xor(std::string a, absl::string_view b) {
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = static_cast<char>(a[i] ^ b[i]);
  return a;
}

bool IsHex(absl::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_isxdigit(static_cast<unsigned char>(c)); });
}

}  // namespace

std::string Sessions::Open(Visitor visitor, std::shared_ptr<Account> account,
                           absl::Time token_end) {
  const MonoTime now = clock_->Mono();
  const absl::Duration life = std::min(kLifetimeMax, token_end - clock_->Wall());
  auto session = std::make_shared<Session>(Session{.id = MakeCookieValue(),
                                                   .visitor = std::move(visitor),
                                                   .account = std::move(account),
                                                   .end = now + life,
                                                   .used_at = now});
  const MutexLock lock(&mutex_);
  MakeRoom(session->visitor.principal);
  std::string id = session->id;
  table_.emplace(id, std::move(session));
  return id;
}

std::shared_ptr<const Session> Sessions::Find(absl::string_view id) {
  const MutexLock lock(&mutex_);
  const auto found = table_.find(std::string(id));
  if (found == table_.end()) return nullptr;
  const MonoTime now = clock_->Mono();
  if (now >= found->second->end) {
    table_.erase(found);
    return nullptr;
  }
  found->second->used_at = now;
  return found->second;
}

void Sessions::Close(absl::string_view id) {
  const MutexLock lock(&mutex_);
  table_.erase(std::string(id));
}

size_t Sessions::size() const {
  const MutexLock lock(&mutex_);
  return table_.size();
}

void Sessions::MakeRoom(const std::string& principal) {
  const MonoTime now = clock_->Mono();
  for (auto it = table_.begin(); it != table_.end();)
    it = now >= it->second->end ? table_.erase(it) : std::next(it);
  size_t of_principal = 0;
  auto oldest = table_.end();
  auto oldest_of_principal = table_.end();
  const auto is_older = [end = table_.end()](Table::iterator a, Table::iterator b) {
    return b == end || a->second->used_at < b->second->used_at;
  };
  for (auto it = table_.begin(); it != table_.end(); ++it) {
    if (is_older(it, oldest)) oldest = it;
    if (it->second->visitor.principal != principal) continue;
    ++of_principal;
    if (is_older(it, oldest_of_principal)) oldest_of_principal = it;
  }
  if (of_principal >= kOfPrincipalMax) {
    table_.erase(oldest_of_principal);
  } else if (table_.size() >= kAllMax) {
    table_.erase(oldest);
  }
}

FormTokens::FormTokens() : key_(RandomBytes(kKeyBytes)) {}

std::string FormTokens::Code(absl::string_view cookie) const {
  std::string code(kCodeBytes, '\0');
  unsigned int size = 0;
  CHECK(HMAC(EVP_sha256(), key_.data(), static_cast<int>(key_.size()),
             reinterpret_cast<const unsigned char*>(cookie.data()), cookie.size(),
             reinterpret_cast<unsigned char*>(code.data()), &size) != nullptr);
  CHECK(size == kCodeBytes);
  return code;
}

std::string FormTokens::Make(absl::string_view cookie) const {
  const std::string mask = RandomBytes(kCodeBytes);
  return absl::BytesToHexString(mask + Xor(Code(cookie), mask));
}

bool FormTokens::Check(absl::string_view cookie, absl::string_view token) const {
  if (cookie.empty() || token.size() != 4 * kCodeBytes || !IsHex(token)) return false;
  const std::string bytes = absl::HexStringToBytes(token);
  const std::string given = Xor(bytes.substr(kCodeBytes), bytes.substr(0, kCodeBytes));
  return CRYPTO_memcmp(given.data(), Code(cookie).data(), kCodeBytes) == 0;
}

std::string CookieValue(absl::string_view header, absl::string_view name) {
  for (const absl::string_view part : absl::StrSplit(header, ';')) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(absl::StripAsciiWhitespace(part), absl::MaxSplits('=', 1));
    if (pair.first != name) continue;
    return pair.second.size() == 2 * kCookieBytes && IsHex(pair.second) ? std::string(pair.second)
                                                                        : std::string();
  }
  return "";
}

std::string MakeCookieValue() {
  return absl::BytesToHexString(RandomBytes(kCookieBytes));
}

}  // namespace assay::web
