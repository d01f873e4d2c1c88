/** The end of roomd's own options, short forms of places, and times in relative form. */

import { InvalidArgumentError } from "commander";
import { describe, expect, test } from "vitest";
import { hintOf } from "../../../daemon/cli/commands/exec/exec.ts";
import { COMMANDS, familiarHint, OPTIONS } from "../../../daemon/cli/kit/familiar-names.ts";
import { withSeparator } from "../../../daemon/cli/kit/optional-separator.ts";
import { ago } from "../../../daemon/cli/kit/relative-time.ts";
import { withPlace } from "../../../daemon/cli/kit/room-and-agent.ts";
import { textWidth } from "../../../daemon/cli/kit/text-width.ts";
import { mebibytes, target } from "../../../daemon/cli/kit/values.ts";
import { makeProgram } from "../../../daemon/cli/program.ts";
import { unknownIn } from "../../house/command-lines.ts";

describe("options of roomd end at the first word of the command", () => {
  const program = makeProgram(() => {});
  test.each([
    ["exec r a ls -la", "exec r a -- ls -la"],
    ["exec r a --cwd /x --env A=1 ls --json", "exec r a --cwd /x --env A=1 -- ls --json"],
    ["exec --json r a ls --timeout 3", "exec --json r a -- ls --timeout 3"],
    ["exec r a --timeout=5s ls -l", "exec r a --timeout=5s -- ls -l"],
    ["exec -it r a bash -l", "exec -it r a -- bash -l"],
    ["exec r a -- ls --json", "exec r a -- ls --json"],
    ["exec r a ls -- -x", "exec r a -- ls -- -x"],
    ["exec r a -la", "exec r a -la"],
    ["exec r a - x", "exec r a -- - x"],
    ["shell r a top -d 1", "shell r a -- top -d 1"],
    ["run --template t ls -la", "run --template t -- ls -la"],
    ["run ls", "run -- ls"],
    ["room list --json", "room list --json"],
    ["toString a b c", "toString a b c"],
    ["exec", "exec"],
  ])("%s", (given, meant) => {
    expect(withSeparator(program, given.split(" ")).join(" ")).toBe(meant);
  });
});

test.each([
  ["unknown command 'rooms'", ["rooms"], "roomd room list"],
  ["unknown command 'events'", ["events", "r"], "roomd timeline ROOM"],
  ["unknown command 'explain'", ["egress", "explain", "r", "h"], "roomd egress why"],
])("%s suggests the command that was probably meant", (detail, args, meant) => {
  expect(familiarHint(detail, args)).toContain(`\`${meant}\``);
});

test("every suggested command and option exists", () => {
  const commands = Object.values(COMMANDS).flatMap((hint) => `roomd ${hint}`.split("` or `"));
  const spans = Object.values(OPTIONS).flatMap((hint) =>
    [...hint.matchAll(/`([^`]+)`/g)].map(([, span]) => String(span)),
  );
  expect([...commands.filter((line) => !line.includes(" or, ")), ...spans].flatMap(unknownIn)).toEqual([]);
  expect(commands.length + spans.length).toBeGreaterThan(40);
});

describe("a room and an agent in one word are split", () => {
  const program = makeProgram(() => {});
  test.each([
    ["exec r/a ls -la", "exec r a -- ls -la"],
    ["exec --cwd /x/y r/a ls /etc/x", "exec --cwd /x/y r a -- ls /etc/x"],
    ["exec r/a -- ls a/b", "exec r a -- ls a/b"],
    ["exec r a a/b", "exec r a -- a/b"],
    ["exec r/a:/x ls", "exec r/a:/x ls"],
    ["exec -- r/a ls", "exec -- r/a ls"],
    ["shell r/a top", "shell r a -- top"],
    ["logs r/a", "logs r a"],
    ["sandbox get r/a", "sandbox get r a"],
    ["port expose r/a 3000", "port expose r a 3000"],
    ["egress set r/a a.example/24", "egress set r a a.example/24"],
    ["ls r/a", "ls r/a"],
    ["cp a/b r/a:/x", "cp a/b r/a:/x"],
    ["room get r/a", "room get r/a"],
  ])("%s", (given, meant) => {
    expect(withSeparator(program, withPlace(program, given.split(" "))).join(" ")).toBe(meant);
  });
});

test("a shell line passed as one word gets a hint, and no other line does", () => {
  const missing = { exit_code: 127 } as never;
  expect(hintOf(missing, ["echo it's; ls"], "roomd exec r a --")).toMatch(
    /roomd exec r a -- sh -c 'echo it'\\''s; ls'$/,
  );
  expect(hintOf(missing, ["ls"], "")).toBeNull();
  expect(hintOf(missing, ["ls -la", "x"], "")).toBeNull();
  expect(hintOf({ exit_code: 1 } as never, ["a b"], "")).toBeNull();
});

test("sizes are MiB, or have a unit", () => {
  const size = mebibytes(256);
  expect(["512", "512m", "512MiB", "1g", "1.5GB", "2GiB"].map(size)).toEqual([512, 512, 512, 1024, 1536, 2048]);
  for (const wrong of ["", "1k", "0.5", "1.0001g", "100", "-1", "1 g"])
    expect(() => size(wrong)).toThrow(InvalidArgumentError);
});

test("places are parsed as a room, an agent, a path on the drive or on an agent's disk", () => {
  expect(target("r")).toEqual({ room_id: "r", agent: null, path: null });
  expect(target("r/a")).toEqual({ room_id: "r", agent: "a", path: null });
  expect(target("r:/x:y")).toEqual({ room_id: "r", agent: null, path: "/x:y" });
  expect(target("r/a:/x/y")).toEqual({ room_id: "r", agent: "a", path: "/x/y" });
  for (const wrong of ["", "/a", "r/", "r:", ":/x", "r/a/b"]) expect(() => target(wrong)).toThrow(InvalidArgumentError);
});

test("times are relative, in their largest unit", () => {
  const now = Date.parse("2026-01-31T12:00:00Z");
  expect(["2026-01-31T11:56:30Z", "2026-01-29T12:00:00Z", "2026-01-31T14:00:00Z"].map((at) => ago(at, now))).toEqual([
    "3 min ago",
    "2 d ago",
    "in 2 h",
  ]);
  expect([ago(null, now), ago("2026-01-31T12:00:00Z", now), ago("-", now)]).toEqual([null, "now", "-"]);
});

test("wide, combining and coloured characters have their terminal width", () => {
  const texts = ["plain", "测试", "é", "e\u0301", "\u001b[32mgreen\u001b[39m", "한", "👍"];
  expect(texts.map(textWidth)).toEqual(texts.map((text) => Bun.stringWidth(text)));
});
