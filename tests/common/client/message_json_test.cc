#include "common/client/message_json.h"

#include "gtest/gtest.h"

#include "assay/v1/resources.pb.h"

namespace assay::client {
namespace {

std::string TextOf(const JsonTables& tables, const google::protobuf::Message& message) {
  return DumpSafely(MessageJson(tables).Show(message), -1);
}

TEST(MessageJsonTest, WithoutRowsTheDescriptionSaysAll) {
  const JsonTables tables = {{v1::Run::descriptor(), {}}};
  v1::Run run;
  EXPECT_EQ(TextOf(tables, run), "{}");
  run.set_name("runs/r-7");
  run.set_number(2);
  run.set_state(v1::Run::RUNNING);
  run.add_workers("workers/w0");
  run.mutable_create_time();  // a time of 0
  run.mutable_start_time()->set_seconds(1);
  run.set_exit_code(0);
  run.set_is_compliant(false);
  run.set_quality(0.25);
  run.add_findings()->set_severity(v1::Finding::WARNING);
  EXPECT_EQ(TextOf(tables, run),
            R"({"name":"runs/r-7","number":2,"state":"running","workers":["workers/w0"],)"
            R"("start_time":"1970-01-01T00:00:01Z","exit_code":0,"is_compliant":false,)"
            R"("quality":0.25,"findings":[{"severity":"warning"}]})");
}

TEST(MessageJsonTest, RowsSayOrderNamesAndWhatIsAlwaysThere) {
  const JsonTables tables = {{v1::Allocation::descriptor(),
                              {{"state", "", kAlways},
                               {"name", "id", kId},
                               {"workers", "nodes", kId},
                               {"labels last_error"},
                               {"requested_by", "", kHidden},
                               {"node_count", "asked_for", kAlways, "failure_count"}}}};
  v1::Allocation allocation;
  EXPECT_EQ(TextOf(tables, allocation), R"({"state":"unknown"})");
  allocation.set_name("allocations/a-1");
  allocation.add_workers("workers/w0");
  (*allocation.mutable_labels())["b"] = "2";
  (*allocation.mutable_labels())["a"] = "1";
  allocation.set_last_error("full");
  allocation.set_requested_by("alice");
  EXPECT_EQ(TextOf(tables, allocation), R"({"state":"unknown","id":"a-1","nodes":["w0"],)"
                                        R"("labels":{"a":"1","b":"2"},"last_error":"full"})");
  allocation.clear_labels();
  allocation.set_failure_count(3);
  EXPECT_EQ(TextOf(tables, allocation),
            R"({"state":"unknown","id":"a-1","nodes":["w0"],"last_error":"full",)"
            R"("asked_for":0,"failure_count":3})");
}

TEST(MessageJsonTest, RowsThatReachIntoAMessageMakeItsFieldsMembers) {
  const JsonTables tables = {
      {v1::Worker::descriptor(), {{"capabilities.host_name", "version"}, {"name"}}}};
  v1::Worker worker;
  worker.set_name("workers/w0");
  worker.mutable_capabilities()->set_host_name("rome");
  worker.mutable_capabilities()->set_core_count(8);
  worker.set_version("1.2");
  EXPECT_EQ(TextOf(tables, worker),
            R"({"version":"rome","name":"workers/w0","core_count":8,"Worker.version":"1.2"})");
}

TEST(MessageJsonTest, TextThatIsJsonIsShownAsJson) {
  const JsonTables tables = {{v1::Hyperparameter::descriptor(), {{"json_value", "", kJsonText}}}};
  v1::Hyperparameter parameter;
  EXPECT_EQ(TextOf(tables, parameter), "{}");
  parameter.set_json_value("[32, null]");
  EXPECT_EQ(TextOf(tables, parameter), R"({"json_value":[32,null]})");
  parameter.set_json_value("[32, ");
  EXPECT_EQ(TextOf(tables, parameter), R"({"json_value":"[32, "})");
}

Json Members(const v1::ArtifactRef& artifact) {
  return {{"file_name", "taken"}, {artifact.sha256(), artifact.size_bytes()}};
}

Json Nothing(const v1::ArtifactRef& /*artifact*/) {
  return Json(Json::value_t::discarded);
}

TEST(MessageJsonTest, DerivedMembersStandForAField) {
  v1::ArtifactRef artifact;
  artifact.set_file_name("result_3.txt");
  artifact.set_sha256("ab");
  artifact.set_size_bytes(5);
  EXPECT_EQ(TextOf({{v1::ArtifactRef::descriptor(),
                     {{"file_name"}, Derived("sha256", "", Members), {"size_bytes"}}}},
                   artifact),
            R"({"file_name":"result_3.txt","ab":5,"size_bytes":5})");
  EXPECT_EQ(
      TextOf({{v1::ArtifactRef::descriptor(), {Derived("sha256", "digest", Nothing)}}}, artifact),
      R"({"file_name":"result_3.txt","size_bytes":5})");
}

TEST(MessageJsonTest, APathNamesAFieldOrNothing) {
  const google::protobuf::Descriptor& type = *v1::Submission::descriptor();
  EXPECT_EQ(ResolvePath(type, "spec.trainer.backend").size(), 3);
  EXPECT_EQ(ResolvePath(type, "findings").size(), 1);
  for (const char* path : {"", "color", "spec.color", "name.color", "findings.rule", "spec."})
    EXPECT_TRUE(ResolvePath(type, path).empty()) << path;
}

}  // namespace
}  // namespace assay::client
