#include "worker/agent/materials.h"

#include <sys/utsname.h>

#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

#include "common/file.h"
#include "common/program_contract.h"

namespace assay::agent {
namespace {

using Json = nlohmann::ordered_json;

const char* ToString(Isolation isolation) {
  switch (isolation) {
    case Isolation::kNone:
      return "none";
    case Isolation::kAccount:
      return "uid";
    case Isolation::kNamespaces:
      return "namespaces";
  }
  return "";
}

Json SourceJson(const v1::CommandWorkload& command) {
  if (!command.has_source()) return nullptr;
  return {{"sha256", command.source().sha256()},
          {"git_commit", command.source().git_commit()},
          {"is_modified", command.source().is_modified()}};
}

Json ImageJson(const v1::CommandWorkload& command) {
  if (!command.has_image()) return nullptr;
  return {{"path", command.image().path()}, {"sha256", command.image().sha256()}};
}

std::string Kernel() {
  utsname name{};
  if (uname(&name) != 0) return "";
  return absl::StrCat(name.sysname, " ", name.release, " ", name.machine);
}

// The first line of what NVIDIA's driver says of itself; empty where there is none.
std::string Driver() {
  const std::string text = ReadFile("/proc/driver/nvidia/version").value_or("");
  return std::string(absl::StripAsciiWhitespace(text.substr(0, text.find('\n'))));
}

}  // namespace

std::string MaterialsJson(const v1::RunSpec& spec, Isolation isolation, absl::string_view limits,
                          absl::string_view version) {
  const v1::CommandWorkload& command = spec.command();
  Json json = {{"contract", kProgramContract},
               {"command", command.command()},
               {"launcher", command.launcher()},
               {"env", Json::object()},
               {"source", SourceJson(command)},
               {"image", ImageJson(command)},
               {"dataset_digest", spec.dataset().digest()},
               {"isolation", ToString(isolation)},
               {"limits", limits},
               {"kernel", Kernel()},
               {"driver", Driver()},
               {"agent", version}};
  // In the order of their names, as the map of the message is not.
  const std::map<std::string, std::string> variables(command.env().begin(), command.env().end());
  for (const auto& [name, value] : variables)
    json["env"][name] = value;
  return absl::StrCat(json.dump(2, ' ', false, Json::error_handler_t::replace), "\n");
}

}  // namespace assay::agent
