#include "server/web/router.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/support/status_matchers.h"

namespace assay::web {
namespace {

using assay::testing::IsOk;
using assay::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::Pair;

absl::StatusOr<Response> One(const Context&, const Request&) {
  return Response{};
}
absl::StatusOr<Response> Two(const Context&, const Request&) {
  return Response{};
}

TEST(RouterTest, PatternsTakeSegments) {
  const Route routes[] = {{"/", One}, {"/entries/{id}", One}, {"/runs/{run}/log", Two}};

  EXPECT_EQ(FindRoute(routes, "/").route, &routes[0]);
  EXPECT_EQ(FindRoute(routes, "/entries/e-4").route, &routes[1]);
  EXPECT_EQ(FindRoute(routes, "/entries/e-4").parameters.First("id"), "e-4");
  EXPECT_EQ(FindRoute(routes, "/runs/r-1/log").route, &routes[2]);
  for (const char* path :
       {"/entries", "/entries/", "/entries/e-4/more", "/runs//log", "entries/x", ""})
    EXPECT_EQ(FindRoute(routes, path).route, nullptr) << path;
}

TEST(RouterTest, ARequestIsTakenApart) {
  const auto request =
      ParseRequest({.method = "HEAD", .target = "/entries/e%2D4.csv?q=a+b&q=%C3%A9&empty=&bare"});

  ASSERT_THAT(request, IsOk());
  EXPECT_EQ(request->method, "GET");
  EXPECT_EQ(request->path, "/entries/e-4");
  EXPECT_EQ(request->format, "csv");
  EXPECT_THAT(request->query.pairs(), ElementsAre(Pair("q", "a b"), Pair("q", "\xC3\xA9"),
                                                  Pair("empty", ""), Pair("bare", "")));
  EXPECT_THAT(request->query.All("q"), ElementsAre("a b", "\xC3\xA9"));
  EXPECT_EQ(request->query.First("q"), "a b");
  EXPECT_FALSE(request->query.Find("other").has_value());
}

TEST(RouterTest, AFormIsReadByItsType) {
  HttpRequest http{.method = "POST", .target = "/signin", .body = "code=abc&x=1%2B1"};

  EXPECT_TRUE(ParseRequest(http)->form.pairs().empty());
  http.headers = {{"content-type", "application/x-www-form-urlencoded; charset=utf-8"}};
  EXPECT_EQ(ParseRequest(http)->form.First("x"), "1+1");
}

TEST(RouterTest, WhatCouldBeReadInTwoWaysIsRefused) {
  for (const char* target :
       {"/a/../b", "/a/%2e%2e/b", "/a%2Fb", "/a%00b", "/a%", "/a%1", "/%zz", "/x?a=%", "x", ""})
    EXPECT_THAT(ParseRequest({.method = "GET", .target = target}),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << target;
}

TEST(RouterTest, FieldsAreBounded) {
  std::string text;
  for (size_t i = 0; i < kFieldsMax; ++i)
    absl::StrAppend(&text, "a=1&");

  EXPECT_THAT(ParseFields(text), IsOk());
  EXPECT_THAT(ParseFields(text + "b=2"), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace assay::web
