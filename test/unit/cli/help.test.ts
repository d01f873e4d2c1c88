import type { Command } from "commander";
import { expect, test } from "vitest";
import { makeProgram } from "../../../daemon/cli/program.ts";
import { run } from "./cli-fixture.ts";

const COMMANDS = [
  "setup",
  "serve",
  "doctor",
  "init",
  "config",
  "backup",
  "browser",
  "restore",
  ...["create", "list", "set-plan", "delete", "credits"].map((verb) => `org ${verb}`),
  ...["add", "list", "remove"].flatMap((verb) => [`org ssh-key ${verb}`, `ssh-key ${verb}`]),
  ...["cp", "ls", "ps", "rm", "run"],
  ...["create", "list", "rotate", "revoke"].map((verb) => `key ${verb}`),
  ...["create", "list", "link", "disable", "enable", "sign-out", "export", "forget"].map((verb) => `user ${verb}`),
  ...["invite", "list", "approve", "refuse"].map((verb) => `signup ${verb}`),
  ...["list", "end"].map((verb) => `application ${verb}`),
  ...["create", "list", "revoke"].map((verb) => `ssh-access ${verb}`),
  ...["expose", "list", "unexpose"].map((verb) => `port ${verb}`),
  ...["build", "import", "refresh", "request", "follow", "cancel", "list", "get", "remove"].map(
    (verb) => `template ${verb}`,
  ),
  ...["create", "list", "overview", "get", "update", "move", "backup", "destroy"].map((verb) => `room ${verb}`),
  ...["create", "list", "get", "destroy", "metrics", "update", "standby", "hibernate", "resume"].map(
    (verb) => `sandbox ${verb}`,
  ),
  ...["snapshot", "fork", "rollback"].map((verb) => `sandbox ${verb}`),
  ...["list", "get", "delete"].map((verb) => `snapshot ${verb}`),
  ...["checkpoint", "checkpoints", "fork", "restore"].map((verb) => `room ${verb}`),
  ...["get", "delete"].map((verb) => `checkpoint ${verb}`),
  ...["ls", "put", "get", "read", "write", "rm", "mkdir", "mv", "stat"].map((verb) => `drive ${verb}`),
  ...["stat", "mkdir", "mv", "watch"].map((verb) => `file ${verb}`),
  "exec",
  ...["code", "complete-names", "ssh-config"],
  "execution attach",
  "execution end",
  "execution get",
  "execution list",
  "execution signal",
  "shell",
  "screen",
  "computer",
  ...["start", "stop", "list", "get", "film", "save", "delete"].map((verb) => `recording ${verb}`),
  "logs",
  "mcp",
  ...["get", "set"].map((verb) => `egress ${verb}`),
  ...["list", "get", "watch", "close", "token"].map((verb) => `terminal ${verb}`),
  ...["send", "wait", "health", "hibernate", "limits", "credits", "login", "logout", "whoami"],
  ...["list", "get", "send", "reply", "ack"].map((verb) => `message ${verb}`),
  ...["list", "subscribe"].map((verb) => `agent ${verb}`),
  ...["create", "list", "get", "update", "delete", "rotate", "deliveries", "redeliver", "test"].map(
    (verb) => `webhook ${verb}`,
  ),
  ...["arrive", "list", "get", "cancel"].map((verb) => `barrier ${verb}`),
  ...["list", "summary", "follow", "export", "verify"].map((verb) => `audit ${verb}`),
  ...["init", "token", "join", "list", "drain", "remove", "evacuate", "keep", "rejoin"].map(
    (verb) => `cluster ${verb}`,
  ),
  "uninstall",
  "upgrade",
  "usage",
  "waits",
  "timeline",
  "open",
  "egress network",
  "egress why",
  "top",
  "completion",
  ...["list", "show"].map((verb) => `prompt ${verb}`),
  ...["install", "remove"].map((verb) => `skills ${verb}`),
];

interface Place {
  words: string[];
  command: Command;
  isLeaf: boolean;
}

function* paths(command: Command, prefix: string[] = []): Generator<Place> {
  yield { words: prefix, command, isLeaf: command.commands.length === 0 };
  for (const each of command.commands) yield* paths(each, [...prefix, each.name()]);
}

const all = [...paths(makeProgram(() => {}))];

test("has these commands and no others", () => {
  const leaves = all.filter(({ isLeaf }) => isLeaf).map(({ words }) => words.join(" "));
  expect(leaves.sort()).toEqual([...COMMANDS].sort());
});

/** Output of a command's --help, rendered in this process; a process for each would take a minute. */
function helpOf(command: Command): string {
  const printed: string[] = [];
  command.configureOutput({ writeOut: (text) => printed.push(text) }).outputHelp();
  return printed.join("");
}

test.each(all)("the help of `roomd $words` ends with examples", ({ words, command, isLeaf }) => {
  const stdout = helpOf(command);
  const [, examples = ""] = stdout.split("\nExamples:\n");
  const lines = examples.trimEnd().split("\n");
  expect(lines.length).toBeGreaterThan(0);
  for (const line of lines) expect(line).toMatch(/^ {2}.*\broomd /);
  expect(lines.some((line) => line.includes(`roomd ${words.join(" ")}`.trim()))).toBe(true);
  if (isLeaf) expect(stdout).toContain("--json");
});

test("the help names the exit statuses", async () => {
  expect((await run(["--help"])).stdout).toMatch(/\b0 .*; 1 .*; 2 /);
  expect((await run(["exec", "--help"])).stdout).toMatch(/124 .*128\+n .*\n125 /);
});

test("prints its version", async () => {
  expect(await run(["--version"])).toMatchObject({ status: 0, stdout: expect.stringMatching(/^roomd \S+ \(\w+\)\n$/) });
});

test("a command line without arguments prints the help and succeeds", async () => {
  const { stdout } = await run(["--help"]);
  expect(await run([])).toEqual({ status: 0, stdout, stderr: "" });
});

test.concurrent.each([
  [["nonsense"]],
  [["room"]],
  [["room", "list", "--bogus"]],
  [["room", "create"]],
  [["room", "create", "a", "b"]],
  [["room", "create", "a", "--ttl", "soon"]],
  [["room", "list", "--limit", "0"]],
  [["room", "list", "--state", "gone"]],
  [["sandbox", "create", "a", "b", "--memory", "512X"]],
  [["sandbox", "create", "a", "b", "--env", "NOVALUE"]],
  [["drive", "get", "room-without-path", "-"]],
  [["key", "create", "--name", "a", "--scope", "everything"]],
  [["audit"]],
  [["audit", "a", "--org"]],
  [["audit", "follow"]],
  [["audit", "export", "a", "--org"]],
  [["drive", "mv", "a:/x", "b:/x"]],
])("%j is a usage error", async (args) => {
  const { status, stdout, stderr } = await run(args, { env: { ROOMD_API_KEY: "key-test" } });
  expect(status).toBe(2);
  expect(stdout).toBe("");
  expect(stderr).not.toBe("");
});

test.concurrent.each([
  [["rom", "list"], "unknown command 'rom'", "Did you mean one of rm, room? "],
  [["cat", "r:/x"], "unknown command 'cat'", "For that there is `roomd cp ROOM/AGENT:PATH -`. "],
  [["create"], "unknown command 'create'", "For that there is `roomd sandbox create`. "],
  [["delete", "r"], "unknown command 'delete'", "For that there is `roomd rm`. "],
  [["snapshot", "create", "r"], "unknown command 'create'", "For that there is `roomd sandbox snapshot`. "],
  [["sandbox", "rm", "r", "a"], "unknown command 'rm'", "For that there is `roomd sandbox destroy`. "],
  [
    ["sandbox", "create", "r", "a", "--ttl", "1h"],
    "unknown option '--ttl'",
    "The lifetime is --max-duration of a sandbox, and --ttl of `roomd room create`. ",
  ],
  [["room", "creat", "a"], "unknown command 'creat'", "Did you mean create? "],
  [["room", "list", "--lmit", "3"], "unknown option '--lmit'", "Did you mean --limit? "],
  [["room", "get"], "missing required argument 'room'", "For example: `roomd room get build-42`. "],
  [["key", "create"], "required option '--name <name>' not specified", "For example: `roomd key create --name ci`. "],
])("%j reports the error and the probable intention, as text and as JSON", async (args, detail, meant) => {
  const hint = `${meant}Run it with --help to see its arguments and options.`;
  expect((await run(args)).stderr).toBe(`roomd: ${detail}\n${hint}\n`);
  const { status, stdout, stderr } = await run([...args, "--json"]);
  expect([status, stdout, JSON.parse(stderr)]).toEqual([2, "", { code: "usage", detail, errors: [], hint }]);
});

test("--org with a name reports another error than a missing room", async () => {
  const org = "org_01J8ZQ4T9V6W3X2Y1Z0A5B7C8D";
  expect((await run(["audit", "summary", "--org", org])).stderr).toContain("not both");
  expect((await run(["audit", "summary"])).stderr).toContain("--org");
});

test("`roomd help room create` is its --help", async () => {
  const result = await run(["help", "room", "create"]);
  expect(result).toMatchObject({ status: 0, stderr: "" });
  expect(result).toEqual(await run(["room", "create", "--help"]));
  expect(result.stdout).toContain("\nExamples:\n  roomd room create build-42\n");
});
