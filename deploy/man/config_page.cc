// Writes the man page (section 5) of a daemon's configuration from the comments of its proto.
//
//   assay-config-page DESCRIPTOR_SET ServerConfig|WorkerConfig|WebConfig DIRECTORY
//
// DESCRIPTOR_SET: by protoc --include_source_info --include_imports. A member's comment stands
// above or beside it; messages that it holds follow as sections.

#include <cstdlib>
#include <deque>
#include <fstream>
#include <iostream>
#include <set>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"

namespace assay::pages {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::SourceLocation;

constexpr int kExitUsage = 2;

std::string Roff(absl::string_view text) {
  std::string escaped = absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"-", "\\-"}});
  if (absl::StartsWith(escaped, ".") || absl::StartsWith(escaped, "'")) escaped.insert(0, "\\&");
  return escaped;
}

// What the proto says of a message, member or value, on one line.
template <typename Described>
std::string CommentOf(const Described& described) {
  SourceLocation location;
  if (!described.GetSourceLocation(&location)) return "";
  const std::string all = absl::StrCat(location.leading_comments, " ", location.trailing_comments);
  std::string text = absl::StrReplaceAll(all, {{"\n", " "}});
  absl::RemoveExtraAsciiWhitespace(&text);
  return text;
}

std::string TypeName(const FieldDescriptor& field) {
  if (field.is_map())
    return "map<string, " + std::string(TypeName(*field.message_type()->field(1))) + ">";
  std::string name = field.type_name();
  if (field.message_type() != nullptr) name = field.message_type()->name() + " { }";
  if (field.enum_type() != nullptr) name = field.enum_type()->name();
  return field.is_repeated() ? name + ", may be repeated" : name;
}

// `values`, each with its comment.
std::string ValuesText(const EnumDescriptor& values) {
  std::string text;
  for (int i = 0; i < values.value_count(); ++i) {
    absl::StrAppend(&text, ".br\n\\fB", Roff(values.value(i)->name()), "\\fR ",
                    Roff(CommentOf(*values.value(i))), "\n");
  }
  return text;
}

std::string MembersText(const Descriptor& message, std::deque<const Descriptor*>* nested) {
  std::string text;
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    const std::string comment = CommentOf(field);
    absl::StrAppend(&text, ".TP\n.BR ", Roff(field.name()), " \" (", Roff(TypeName(field)), ")\"\n",
                    comment.empty() ? "\\&" : Roff(comment), "\n");
    if (field.enum_type() != nullptr) absl::StrAppend(&text, ValuesText(*field.enum_type()));
    if (field.message_type() != nullptr && !field.is_map()) nested->push_back(field.message_type());
  }
  return text;
}

std::string Page(const Descriptor& config, const std::string& name, const std::string& program) {
  std::deque<const Descriptor*> pending;
  std::string text = absl::StrCat(
      ".TH ", Roff(absl::AsciiStrToUpper(name)), " 5 \"\" Assay\n.SH NAME\n", Roff(name),
      " \\- configuration of ", Roff(program), "\n.SH DESCRIPTION\n",
      "A text proto of the message assay.v1.", config.name(), ", one member a line:\n.PP\n.nf\n",
      "    name: \"value\"\n    message { member: 1 }\n.fi\n.PP\n.B ", Roff(program),
      " \\-\\-config=\\fIFILE\\fB \\-\\-check_config\nreads and judges it, and names all "
      "problems.\n",
      ".SH MEMBERS\n", MembersText(config, &pending));
  std::set<std::string> written = {config.name()};
  for (; !pending.empty(); pending.pop_front()) {
    const Descriptor& message = *pending.front();
    if (!written.insert(message.name()).second) continue;
    absl::StrAppend(&text, ".SS \"", message.name(), "\"\n", Roff(CommentOf(message)), "\n",
                    MembersText(message, &pending));
  }
  return absl::StrCat(text, ".SH SEE ALSO\n.BR ", Roff(program), " (8)\n");
}

// Whose configuration a message is.
std::string ProgramOf(absl::string_view message) {
  if (message == "ServerConfig") return "assayd";
  return message == "WebConfig" ? "assay-web" : "assay-worker";
}

int Main(const std::string& set_path, const std::string& message, const std::string& directory) {
  std::ifstream input(set_path, std::ios::binary);
  google::protobuf::FileDescriptorSet files;
  if (!files.ParseFromIstream(&input)) {
    std::cerr << set_path << " is no descriptor set: make it with protoc --include_source_info\n";
    return EXIT_FAILURE;
  }
  google::protobuf::DescriptorPool pool;
  for (const google::protobuf::FileDescriptorProto& file : files.file())
    pool.BuildFile(file);
  const Descriptor* const config = pool.FindMessageTypeByName(absl::StrCat("assay.v1.", message));
  if (config == nullptr) {
    std::cerr << set_path << " has no message assay.v1." << message << "\n";
    return EXIT_FAILURE;
  }
  const std::string program = ProgramOf(message);
  const std::string name = absl::StrCat(program, ".textproto");
  const std::string path = absl::StrCat(directory, "/", name, ".5");
  std::ofstream file(path);
  file << Page(*config, name, program);
  file.close();
  if (!file.good()) {
    std::cerr << "cannot write " << path << "\n";
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace assay::pages

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "Usage: assay-config-page DESCRIPTOR_SET ServerConfig|WorkerConfig|WebConfig "
                 "DIRECTORY\n";
    return assay::pages::kExitUsage;
  }
  return assay::pages::Main(argv[1], argv[2], argv[3]);
}
