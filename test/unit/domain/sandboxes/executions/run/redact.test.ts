/** The audit's text of a command: no secret, and no word that blocks the daemon while it is parsed. */
import { describe, expect, test } from "vitest";
import { redact } from "../../../../../../daemon/domain/sandboxes/executions/run/redact.ts";

describe("text that looks like a secret is hidden", () => {
  test.each([
    ["--token=abc", "--token=***"],
    ["GITHUB_TOKEN=abc make", "GITHUB_TOKEN=*** make"],
    ['{"password": "abc", "user": "me"}', '{"password": "***", "user": "me"}'],
    ["db.password:abc&x=1", "db.password:***&x=1"],
    ["x=token=abc", "x=token=***"],
    ["token=password=abc secret: d", "token=*** secret: ***"],
    ["curl -H 'Authorization: Bearer abc.def'", "curl -H 'Authorization: Bearer ***'"],
    ["https://me:abc@host/x", "https://me:***@host/x"],
    ["curl -H 'Authorization: abc' x", "curl -H 'Authorization: ***' x"],
    ["https://0123456789abcdef@host/x", "https://***@host/x"],
    ["https://me@host/x", "https://me@host/x"],
    ["echo ghp_0123456789abcdef", "echo ***"],
    [`echo key-${"k".repeat(43)} sat_${"s".repeat(43)}`, "echo *** ***"],
    ["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "***"],
    ["tokens are fine, so is token =", "tokens are fine, so is token ="],
    ["a=b c:d", "a=b c:d"],
  ])("%s", (word, shown) => {
    expect(redact([word])).toEqual([shown]);
  });

  test("and so is the argument after such an option", () => {
    expect(redact(["x", "--api-key", "abc", "-token", "d", "token", "e"])).toEqual([
      "x",
      "--api-key",
      "***",
      "-token",
      "***",
      "token",
      "e",
    ]);
  });
});

test("the password of a user and password in one argument is hidden too", () => {
  expect(redact(["curl", "-u", "me:abc:d", "--user", "me", "-u"])).toEqual([
    "curl",
    "-u",
    "me:***",
    "--user",
    "me",
    "-u",
  ]);
});

test("1,024 characters are retained, and a secret at their end is hidden as well", () => {
  const words = redact(["x".repeat(1000), `token=${"s".repeat(3000)}`, "more"]);
  expect(words).toEqual(["x".repeat(1000), "token=***", "more"]);
  expect(redact(["x".repeat(5000), "more"])).toEqual(["x".repeat(1024)]);
});

// Each of these took seconds to hours while the search for names started at each of their letters.
test.each([
  ["names of names", "token".repeat(800)],
  ["names of names that are no assignment", `${"token".repeat(800)}!`],
  ["an option without end", `--${"token".repeat(400_000)}!`],
  ["spaces after names", `token${" ".repeat(4000)}`.repeat(100)],
  ["beginnings of URLs", "a://b:".repeat(100_000)],
  ["users without a host", "a://b".repeat(100_000)],
  ["authorizations of nothing", `authorization${" ".repeat(4000)}`.repeat(100)],
  ["beginnings of signed tokens", "eyJaaaaaaaaa".repeat(100_000)],
])("%s take no longer than other words", (_, word) => {
  expect(redact(Array.from({ length: 64 }, () => word)).join("").length).toBeLessThanOrEqual(1024);
});
