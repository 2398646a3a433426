#include "cli/command/config_command.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "cli/command/context.h"
#include "cli/command/settings.h"
#include "common/client/json.h"
#include "common/client/suggest.h"
#include "common/file.h"
#include "common/status.h"
#include "common/toml.h"

namespace assay::cli {
namespace {

absl::StatusOr<client::SettingKey> KeyNamed(const std::string& name) {
  std::vector<std::string> known;
  for (const client::SettingKey& key : client::SettingKeys()) {
    if (key.name == name) return key;
    known.emplace_back(key.name);
  }
  return absl::NotFoundError(absl::StrCat("there is no setting '", name, "'",
                                          client::DidYouMean(name, known),
                                          "; 'assay help environment' lists them"));
}

Json SettingJson(const client::Setting& setting) {
  const absl::StatusOr<client::SettingKey> key = KeyNamed(setting.key);
  const bool is_secret = key.ok() && key->is_secret;
  return {{"key", setting.key},
          {"value", is_secret ? "(hidden)" : setting.value},
          {"origin", setting.origin}};
}

absl::StatusOr<ExitStatus> RunConfigList(Context* context, const Arguments& arguments) {
  ListView view{.schema = "assay.setting/v1", .columns = {{"KEY", "key"}, {"VALUE", "value"}}};
  if (arguments.Has("origin")) view.columns.push_back({"ORIGIN", "origin"});
  for (const client::Setting& setting : context->config().All())
    view.items.push_back(SettingJson(setting));
  RETURN_IF_ERROR(context->printer().List(view));
  return ExitStatus::kDone;
}

absl::StatusOr<ExitStatus> RunConfigGet(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::SettingKey key, KeyNamed(arguments.Get("KEY")));
  const std::optional<client::Setting> setting = context->config().Find(key.name);
  if (!setting.has_value())
    return absl::NotFoundError(absl::StrCat("'", key.name, "' is not set anywhere"));
  if (context->printer().IsJson()) {
    RETURN_IF_ERROR(
        context->printer().Show({.schema = "assay.setting/v1", .value = SettingJson(*setting)}));
  } else {
    context->out() << client::RawText(SettingJson(*setting)["value"]) << "\n";
  }
  return ExitStatus::kDone;
}

// Writes `key` into the user's file, or the project's, and says where.
absl::Status WriteSetting(Context* context, const std::string& key, const std::string& value,
                          bool is_project) {
  const std::string path =
      is_project ? ProjectConfigPath(context->env()) : UserConfigPath(context->env());
  std::string text;
  if (FileExists(path)) {
    ASSIGN_OR_RETURN(text, ReadFile(path, kTomlBytesMax));
  }
  RETURN_IF_ERROR(MakeDirectories(path.substr(0, path.rfind('/'))));
  constexpr int kOwnerOnly = 0600;
  constexpr int kReadable = 0644;
  RETURN_IF_ERROR(WriteFileAtomic(path, client::WithSetting(text, key, value),
                                  is_project ? kReadable : kOwnerOnly));
  context->out() << key << " is set in " << path << "\n";
  const std::optional<client::Setting> winner = context->config().Find(key);
  const client::Setting::Level written =
      is_project ? client::Setting::Level::kProject : client::Setting::Level::kUser;
  if (winner.has_value() && winner->level < written)
    context->Warn(absl::StrCat(winner->origin, " is stronger and hides it"));
  return absl::OkStatus();
}

absl::StatusOr<ExitStatus> RunConfigSet(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::SettingKey key, KeyNamed(arguments.Get("KEY")));
  const bool is_project = arguments.Has("project");
  if (key.is_secret)
    return absl::InvalidArgumentError(absl::StrCat(
        "'", key.name, "' is a secret, and every user of this host can read a command ",
        "line; set ", key.name, "_file, or write the line ", key.name, " = \"...\" into ",
        UserConfigPath(context->env()), " yourself"));
  RETURN_IF_ERROR(WriteSetting(context, key.name, arguments.Get("VALUE"), is_project));
  return ExitStatus::kDone;
}

absl::StatusOr<ExitStatus> RunConfigContexts(Context* context, const Arguments&) {
  const client::Config& config = context->config();
  const std::optional<client::Setting> chosen = config.Find("context");
  ListView view{.schema = "assay.context/v1",
                .columns = {{"NAME", "name"},
                            {"COORDINATOR", "coordinator"},
                            {"IN USE", "in_use", Format::kYesNo},
                            {"ORIGIN", "origin", Format::kText, 1}},
                .empty_text = "no contexts; [contexts.NAME] in your config.toml defines one"};
  for (const client::Config::Context& named : config.contexts()) {
    Json& item = view.items.emplace_back(Json{{"name", named.name}});
    for (const client::Setting& setting : named.settings) {
      if (setting.key == "server" || setting.key == "socket") item["coordinator"] = setting.value;
      item["origin"] = setting.origin;
    }
    item["in_use"] = chosen.has_value() && chosen->value == named.name;
  }
  RETURN_IF_ERROR(context->printer().List(view));
  return ExitStatus::kDone;
}

absl::StatusOr<ExitStatus> RunConfigUse(Context* context, const Arguments& arguments) {
  const std::string name = arguments.Get("NAME");
  std::vector<std::string> known;
  for (const client::Config::Context& named : context->config().contexts())
    known.push_back(named.name);
  if (std::find(known.begin(), known.end(), name) == known.end())
    return absl::NotFoundError(absl::StrCat("there is no context '", name, "'",
                                            client::DidYouMean(name, known),
                                            "; 'assay config contexts' lists them"));
  RETURN_IF_ERROR(WriteSetting(context, "context", name, /*is_project=*/false));
  return ExitStatus::kDone;
}

}  // namespace

std::vector<Command> ConfigCommands() {
  return {{.path = "config list",
           .summary = "list settings that are in force",
           .options = {{.name = "origin", .help = "also say where each value came from"}},
           .examples = {{"assay config list --origin", ""}},
           .run = RunConfigList},
          {.path = "config get",
           .summary = "print one setting",
           .positionals = {{.name = "KEY", .help = "as server"}},
           .examples = {{"assay config get server", ""}},
           .run = RunConfigGet},
          {.path = "config set",
           .summary = "write a setting into your file",
           .positionals = {{.name = "KEY", .help = "as server"},
                           {.name = "VALUE", .help = "its new value"}},
           .options = {{.name = "project", .help = "into the nearest assay.toml instead"}},
           .examples = {{"assay config set server bench.example.org:7443", ""},
                        {"assay config set ca ~/.config/assay/ca.crt", ""}},
           .run = RunConfigSet},
          {.path = "config contexts",
           .summary = "list the coordinators that your configuration names",
           .examples = {{"assay config contexts", ""}},
           .run = RunConfigContexts},
          {.path = "config use",
           .summary = "choose the coordinator for the commands to come",
           .positionals = {{.name = "NAME", .help = "a context: prod, test"}},
           .examples = {{"assay config use prod", ""},
                        {"assay --context test node list", "for one command only"}},
           .run = RunConfigUse}};
}

}  // namespace assay::cli
