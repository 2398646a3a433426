#include "cli/coordinator/doctor_network.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

#include "common/client/ids.h"
#include "common/client/tls_probe.h"

namespace assay::cli {
namespace {

constexpr absl::Duration kSoon = absl::Hours(24 * 30);
constexpr absl::Duration kVerySoon = absl::Hours(24 * 3);
constexpr absl::Duration kProbeTimeout = absl::Seconds(3);

std::string StateOfEnd(absl::Duration left) {
  return left < kVerySoon ? "fail" : left < kSoon ? "warn" : "ok";
}

absl::Time EndOf(const v1::Worker& worker) {
  return absl::FromUnixSeconds(worker.certificate_end_time().seconds());
}

// host:port of https://host[:port][/...].
std::string AddressOf(absl::string_view url) {
  absl::ConsumePrefix(&url, "https://");
  const std::string host(url.substr(0, url.find('/')));
  const size_t colon = host.rfind(':');
  const bool has_port = colon != std::string::npos && !absl::StrContains(host.substr(colon), "]");
  return has_port ? host : absl::StrCat(host, ":443");
}

}  // namespace

Check CheckCertificateEnd(const std::string& name, const std::string& whose, absl::Time end,
                          const Environment& env, const std::string& remedy) {
  const absl::Duration left = end - env.clock->Wall();
  const bool is_over = left <= absl::ZeroDuration();
  const std::string state = StateOfEnd(left);
  return {name, state,
          absl::StrCat(whose, is_over ? " ended on " : " is valid until ",
                       absl::FormatTime("%Y-%m-%d", end, env.time_zone)),
          state == "ok" ? "" : remedy};
}

Check CheckNodeCertificates(const std::vector<v1::Worker>& workers, const Environment& env) {
  const v1::Worker* first = nullptr;
  int soon_count = 0;
  for (const v1::Worker& worker : workers) {
    if (!worker.has_certificate_end_time()) continue;
    if (first == nullptr || EndOf(worker) < EndOf(*first)) first = &worker;
    soon_count += EndOf(worker) - env.clock->Wall() < kSoon ? 1 : 0;
  }
  const std::string name = "node certificates";
  if (first == nullptr) return {name, "ok", "no node has called since the coordinator started"};
  Check check = CheckCertificateEnd(
      name, absl::StrCat("that of ", client::ShortId(first->name()), ", the first to end,"),
      EndOf(*first), env,
      "agents renew theirs by themselves: 'journalctl -u assay-worker' on the node says why it has "
      "not; one that has ended needs a new token, 'assay admin enrol NAME'");
  if (soon_count > 1) absl::StrAppend(&check.detail, "; ", soon_count, " end within 30 days");
  return check;
}

Check CheckOffset(absl::Time theirs, absl::Time before, absl::Time after) {
  constexpr absl::Duration kWarn = absl::Seconds(2);  // people compare times that they see
  constexpr absl::Duration kFail = absl::Minutes(5);  // new certificates are not valid yet
  const absl::Duration slack = (after - before) / 2;
  const absl::Duration offset = before + slack - theirs;
  // What the call's own time may have made is nobody's fault.
  const absl::Duration least = std::max(absl::AbsDuration(offset) - slack, absl::ZeroDuration());
  const std::string state = least >= kFail ? "fail" : least >= kWarn ? "warn" : "ok";
  return {"clock offset", state,
          absl::StrFormat("this host's is %+.3f s from the coordinator's, within %.3f s",
                          absl::ToDoubleSeconds(offset), absl::ToDoubleSeconds(slack)),
          state == "ok" ? "" : "run chrony or ntpd on both hosts"};
}

Check CheckPort(const std::string& address) {
  const absl::StatusOr<absl::Time> end = client::ProbeCertificateEnd(address, kProbeTimeout);
  if (end.ok()) return {"port", "ok", absl::StrCat(address, " is reached from this host")};
  return {"port", "fail", std::string(end.status().message()),
          "nodes and people come by it: look at listen_address and at the firewall"};
}

Check CheckSite(const std::string& url, const Environment& env) {
  const absl::StatusOr<absl::Time> end = client::ProbeCertificateEnd(AddressOf(url), kProbeTimeout);
  if (end.ok())
    return CheckCertificateEnd(
        "site", absl::StrCat(url, " is reached, its certificate"), *end, env,
        "renew it, then 'systemctl reload assay-web' (docs/operator.md, A site for browsers)");
  return {"site", "warn", absl::StrCat(url, ": ", end.status().message()),
          "on its host: systemctl status assay-web; or correct web_url in assayd.textproto"};
}

}  // namespace assay::cli
