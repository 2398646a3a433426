// One request by libcurl, as any client of HTTP makes it.

#ifndef TESTS_SUPPORT_HTTP_GET_H_
#define TESTS_SUPPORT_HTTP_GET_H_

#include <curl/curl.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace assay::testing {

struct HttpAnswer {
  long status = 0;
  std::string content_type;
  std::string body;
};

// UNAVAILABLE with curl's words if there is no answer, which is waited for for a minute.
//   method: GET, POST ...
//   ca_path: PEM, of who signs the server's certificate; empty for http
inline absl::StatusOr<HttpAnswer> HttpGet(const std::string& url, const std::string& method = "GET",
                                          const std::string& ca_path = "") {
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(),
                                                                 curl_easy_cleanup);
  HttpAnswer answer;
  const auto take = +[](char* bytes, size_t size, size_t count, void* body) {
    static_cast<std::string*>(body)->append(bytes, size * count);
    return size * count;
  };
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_CUSTOMREQUEST, method.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT, 60L);
  curl_easy_setopt(curl.get(), CURLOPT_NOPROXY, "*");
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, take);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &answer.body);
  if (!ca_path.empty()) curl_easy_setopt(curl.get(), CURLOPT_CAINFO, ca_path.c_str());
  if (const CURLcode code = curl_easy_perform(curl.get()); code != CURLE_OK)
    return absl::UnavailableError(absl::StrCat(url, ": ", curl_easy_strerror(code)));
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &answer.status);
  const char* type = nullptr;
  curl_easy_getinfo(curl.get(), CURLINFO_CONTENT_TYPE, &type);
  if (type != nullptr) answer.content_type = type;
  return answer;
}

}  // namespace assay::testing

#endif  // TESTS_SUPPORT_HTTP_GET_H_
