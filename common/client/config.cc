#include "common/client/config.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"

#include "common/client/suggest.h"
#include "common/file.h"
#include "common/status.h"
#include "common/toml.h"

namespace assay::client {
namespace {

std::vector<std::string> KeyNames() {
  std::vector<std::string> names;
  for (const SettingKey& key : SettingKeys())
    names.emplace_back(key.name);
  return names;
}

const SettingKey* FindKey(absl::string_view name) {
  for (const SettingKey& key : SettingKeys())
    if (key.name == name) return &key;
  return nullptr;
}

std::string Parent(const std::string& directory) {
  const size_t slash = directory.rfind('/');
  return slash == std::string::npos || slash == 0 ? "/" : directory.substr(0, slash);
}

absl::Status CheckKey(const std::string& name, const std::string& where, Setting::Level level) {
  const SettingKey* known = FindKey(name);
  if (known == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": unknown key '", name, "'",
                                                   DidYouMean(name, KeyNames()), "; known are ",
                                                   absl::StrJoin(KeyNames(), ", ")));
  }
  if (known->is_secret && level == Setting::Level::kProject) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": '", name, "' is a secret and this file is shared; move it to ",
                     "~/.config/assay/config.toml or set ", known->variable));
  }
  return absl::OkStatus();
}

}  // namespace

const std::vector<SettingKey>& SettingKeys() {
  static const auto* const kKeys = new std::vector<SettingKey>{
      {"context", "ASSAY_CONTEXT", "a coordinator by name, from [contexts.NAME]", false},
      {"server", "ASSAY_SERVER", "host:port of the coordinator", false},
      {"socket", "ASSAY_SOCKET", "Unix socket of a coordinator on this host", false},
      {"ca", "ASSAY_CA", "file with the coordinator's CA certificate (PEM)", false},
      {"token", "ASSAY_TOKEN", "access token", true},
      {"token_file", "ASSAY_TOKEN_FILE", "file that holds the access token", false},
      {"output", "ASSAY_OUTPUT", "table, wide, plain, name, json, ndjson, yaml or csv", false},
      {"color", "ASSAY_COLOR", "auto, always or never", false},
  };
  return *kKeys;
}

namespace {

constexpr char kContexts[] = "contexts";

std::string Place(const std::string& path, const toml::source_position& at) {
  return absl::StrCat(path, ":", at.line, ":", at.column);
}

// The settings of `table`, a file or one of its contexts; the table of contexts itself is left out.
absl::StatusOr<std::vector<Setting>> ReadSettings(const toml::table& table, const std::string& path,
                                                  Setting::Level level) {
  std::vector<Setting> settings;
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    if (name == kContexts && node.is_table()) continue;
    const std::string where = Place(path, key.source().begin);
    RETURN_IF_ERROR(CheckKey(name, where, level));
    const auto value = node.value<std::string>();
    if (!node.is_string() || !value.has_value())
      return absl::InvalidArgumentError(absl::StrCat(where, ": '", name, "' must be a string"));
    settings.push_back({name, *value, absl::StrCat(path, ":", key.source().begin.line), level});
  }
  return settings;
}

absl::StatusOr<std::vector<Config::Context>> ReadContexts(const toml::table& table,
                                                          const std::string& path,
                                                          Setting::Level level) {
  std::vector<Config::Context> contexts;
  const toml::table* named = table[kContexts].as_table();
  if (named == nullptr) return contexts;
  for (const auto& [key, node] : *named) {
    const std::string where = Place(path, key.source().begin);
    const toml::table* body = node.as_table();
    if (body == nullptr)
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": a context is a table: [contexts.", std::string(key.str()), "]"));
    ASSIGN_OR_RETURN(std::vector<Setting> settings, ReadSettings(*body, path, level));
    for (const Setting& setting : settings)
      if (setting.key == "context" || setting.key == "output" || setting.key == "color")
        return absl::InvalidArgumentError(
            absl::StrCat(setting.origin, ": a context says which coordinator; it cannot set '",
                         setting.key, "'"));
    contexts.push_back({std::string(key.str()), std::move(settings)});
  }
  return contexts;
}

}  // namespace

absl::Status Config::ReadFileLevel(const std::string& path, Setting::Level level) {
  if (path.empty() || !FileExists(path)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kTomlBytesMax));
  const ParsedToml file = ParseToml(text);
  if (file.problem.has_value()) return ToStatus(*file.problem, path);
  ASSIGN_OR_RETURN(std::vector<Setting> settings, ReadSettings(file.table, path, level));
  std::move(settings.begin(), settings.end(), std::back_inserter(settings_));
  ASSIGN_OR_RETURN(std::vector<Context> contexts, ReadContexts(file.table, path, level));
  for (Context& context : contexts) {
    const bool is_known =
        std::any_of(contexts_.begin(), contexts_.end(),
                    [&context](const Context& known) { return known.name == context.name; });
    if (!is_known) contexts_.push_back(std::move(context));
  }
  return absl::OkStatus();
}

absl::Status Config::ApplyContext() {
  const std::optional<Setting> chosen = Find("context");
  if (!chosen.has_value()) return absl::OkStatus();
  std::vector<std::string> names;
  for (Context context : contexts_) {
    names.push_back(context.name);
    if (context.name != chosen->value) continue;
    for (Setting& setting : context.settings)
      setting.level = chosen->level;
    const auto place =
        std::find_if(settings_.begin(), settings_.end(),
                     [&](const Setting& setting) { return setting.level > chosen->level; });
    settings_.insert(place, context.settings.begin(), context.settings.end());
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      chosen->origin, ": there is no context '", chosen->value, "'",
      DidYouMean(chosen->value, names), "; known are: ",
      names.empty() ? "none ([contexts.NAME] in ~/.config/assay/config.toml defines one)"
                    : absl::StrJoin(names, ", ")));
}

absl::StatusOr<Config> Config::Load(const ConfigSources& sources) {
  Config config;
  for (const auto& [key, value] : sources.flags)
    config.settings_.push_back({key, value, absl::StrCat("--", key), Setting::Level::kFlag});
  for (const SettingKey& key : SettingKeys()) {
    const auto variable = sources.variables.find(key.variable);
    if (variable != sources.variables.end() && !variable->second.empty())
      config.settings_.push_back(
          {key.name, variable->second, key.variable, Setting::Level::kEnvironment});
  }
  RETURN_IF_ERROR(config.ReadFileLevel(NearestProjectFile(sources.working_directory),
                                       Setting::Level::kProject));
  RETURN_IF_ERROR(config.ReadFileLevel(sources.user_path, Setting::Level::kUser));
  RETURN_IF_ERROR(config.ReadFileLevel(sources.system_path, Setting::Level::kSystem));
  config.settings_.insert(config.settings_.end(), sources.built_in.begin(), sources.built_in.end());
  RETURN_IF_ERROR(config.ApplyContext());
  return config;
}

std::optional<Setting> Config::Find(absl::string_view key) const {
  const auto found = std::find_if(settings_.begin(), settings_.end(),
                                  [&](const Setting& setting) { return setting.key == key; });
  if (found == settings_.end()) return std::nullopt;
  return *found;
}

std::vector<Setting> Config::All() const {
  std::vector<Setting> all;
  for (const SettingKey& key : SettingKeys()) {
    const std::optional<Setting> setting = Find(key.name);
    if (setting.has_value()) all.push_back(*setting);
  }
  return all;
}

std::string NearestProjectFile(const std::string& working_directory) {
  std::string directory = working_directory;
  while (!directory.empty()) {
    std::string path = JoinPath(directory, "assay.toml");
    if (FileExists(path)) return path;
    if (directory == "/" || FileExists(JoinPath(directory, ".git"))) return "";
    directory = Parent(directory);
  }
  return "";
}

std::string WithSetting(absl::string_view text, absl::string_view key, absl::string_view value) {
  // A JSON string is a TOML basic string.
  const std::string line = absl::StrCat(key, " = ", nlohmann::json(std::string(value)).dump());
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  const auto end = std::find_if(lines.begin(), lines.end(), [](const std::string& existing) {
    return absl::StartsWith(absl::StripLeadingAsciiWhitespace(existing), "[");
  });
  bool is_replaced = false;
  for (auto existing = lines.begin(); existing != end; ++existing) {
    const size_t equals = existing->find('=');
    if (equals == std::string::npos ||
        absl::StripAsciiWhitespace(existing->substr(0, equals)) != key)
      continue;
    *existing = line;
    is_replaced = true;
  }
  if (!is_replaced) lines.insert(end, line);
  return absl::StrCat(absl::StrJoin(lines, "\n"), "\n");
}

}  // namespace assay::client
