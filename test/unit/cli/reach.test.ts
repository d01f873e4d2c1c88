/**
 * Coverage of the interface by the command line: the command lines below are run against a stand-in that records the operation and fields
 * of each request. Operations and fields that no command line reaches are listed here with the reason.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { runCommandLine } from "../../../daemon/cli/kit/run-command-line.ts";
import { makeProgram } from "../../../daemon/cli/program.ts";
import type { Operation } from "../../../shared/api/contract.ts";
import { operations } from "../../../shared/api/operations.ts";
import { type Seen, scratch, standIn } from "./cli-fixture.ts";

type Name = keyof typeof operations;

/** Command lines as a shell would split them. */
const LINES: readonly string[][] = [
  "health",
  "limits",
  "whoami",
  "open build-42",
  "usage --group-by day --month 2026-01",
  "credits --limit 1 --cursor c",
  "top --json --room r --interval 250ms",
  "template list --org",
  "cluster list",
  "room create r --label a=b --ttl 1h --host h --host-label a=b",
  "room list --state active --label a=b --host h --order desc --limit 1 --cursor c",
  "room overview --state active --label a=b --host h --order desc --limit 1 --cursor c",
  "room get r",
  "room update r --label a=b --expires-in 1h",
  "room destroy r --delete-drive",
  "sandbox create r w --memory 256 --vcpus 1 --cid 9100 --template t --env A=b --egress example.org --label a=b --idle-timeout 1m --max-duration 1h --wait ready --timeout 1m --no-fabric --no-network --on-idle hibernate --wake-on api --snapshot s",
  "sandbox list r --state running --label a=b --limit 1 --cursor c",
  "sandbox list --state running --label a=b --limit 1 --cursor c",
  "sandbox get r w --timeout 1s",
  "sandbox metrics r w",
  "sandbox update r w --label a=b --idle-timeout 1m --max-duration none --on-idle standby --wake-on none",
  "sandbox update r w --expires-in 1h",
  "sandbox standby r w",
  "sandbox hibernate r w",
  "sandbox snapshot r w --name n --mode disk --expires 1d",
  "sandbox fork r w a b --env A=b --expires 1d",
  "sandbox rollback r w SNAPSHOT",
  "snapshot list r --agent w --limit 1 --cursor c",
  "snapshot get r SNAPSHOT",
  "snapshot delete r SNAPSHOT",
  "room checkpoint r --name n --expires 1d",
  "room checkpoints r --limit 1 --cursor c",
  "room fork r other --checkpoint CHECKPOINT",
  "room restore r CHECKPOINT",
  "room move r --to host-2 --force",
  "room backup r FILE",
  "room restore FILE --name r --host host-2",
  "cluster evacuate host-1 --force",
  "checkpoint get r CHECKPOINT",
  "checkpoint delete r CHECKPOINT",
  "sandbox resume r w",
  "sandbox destroy r w",
  "logs r w --source agent --after 1 --limit 1",
  "egress get r w",
  "egress set r w example.org --if-revision 1",
  "egress network r w --json",
  "egress why r/w example.org:443",
  "exec r w --json --no-stdin --cwd / --env A=b --user u --timeout 1s --max-output 9 --output-to /o --exec-id e -- true",
  "exec r w --background --cwd / --env A=b --user u --timeout 1s --max-output 9 --output-to /o --exec-id e -- true",
  "execution list r w --limit 1 --cursor c",
  "execution get r w e",
  "execution attach r w e --after 1 --no-follow",
  "execution signal r w e TERM",
  "execution end r w e",
  "terminal list r w",
  "terminal get r w t",
  "terminal close r w t",
  "terminal token r w t",
  "screen r w --output PNG --width 640",
  "screen r w --ticket --drive",
  "recording start r w --for 10m",
  "recording stop r w RECORDING",
  "recording list r w",
  "recording get r w RECORDING",
  "recording film r w RECORDING --output -",
  "recording save r w RECORDING --output -",
  "recording delete r w RECORDING",
  "computer r w left_click --coordinate 1,2 --start 3,4 --text t --key k --direction up --amount 1 --duration 1s --region 1,2,3,4 --width 640 --output PNG",
  "ssh-access create r w --expires-in 1m",
  "ssh-access list r w",
  "ssh-access revoke r w a",
  "port expose r w 80 --public --label l --expires-in 1h --wait 1s",
  "port list r w",
  "port unexpose r w 80",
  "browser r w",
  "drive ls r:/ --recursive --limit 1 --cursor c",
  "drive stat r:/a",
  "drive mkdir r:/a --mode 0755 --owner 1000:1000",
  "drive mv r:/a r:/b --overwrite",
  "drive rm r:/a --recursive",
  "drive put FILE r:/a --mode 0600 --owner 1000:1000 --no-overwrite",
  "drive get r:/a -",
  "drive read r:/a --offset 1 --length 1",
  "drive write r:/a text --append --mode 0600 --owner 1000:1000 --no-overwrite --if-match x",
  "cp FILE r/w:/a --mode 0600 --owner agent --no-overwrite",
  "cp r/w:/a -",
  "ls r/w:/a --recursive --limit 1 --cursor c",
  "rm r/w:/a --recursive",
  "file stat r/w:/a --follow",
  "file mkdir r/w:/a --mode 0755 --owner agent",
  "file mv r/w:/a r/w:/b --overwrite",
  "file watch r/w:/a --recursive --after c.1",
  "send r w hello --from a --kind event --reply-to m --message-id n --header a=b --ack --ttl 1h --wait --timeout 1m",
  "send r w,v aGk= --base64",
  "send r topic:t 7 --data",
  "wait r a --from w --topic t --kind event --timeout 1s",
  "message list r --agent a --from w --topic t --kind event --after 1 --limit 1 --cursor c --timeout 1s",
  "message get r m",
  "message reply r m hello --from a --message-id n --header a=b --ack --ttl 1h",
  "message reply r m aGk= --base64",
  "message ack r m --agent a",
  "message send r MESSAGES --from a",
  "agent list r --limit 1 --cursor c",
  "agent subscribe r a t",
  "barrier r b a,c --parties 2 --with a,c --generation 1 --timeout 1s",
  "barrier r b a",
  "barrier list r --limit 1 --cursor c",
  "barrier get r b",
  "barrier cancel r b",
  "waits r",
  "timeline r --since 1 --until 2 --agent a --type command,wait --order asc --limit 1 --cursor c",
  "application list --limit 1 --cursor c",
  "application end GRANT",
  "webhook create https://example.org/ --type room. --room r --disabled",
  "webhook list --limit 1 --cursor c",
  "webhook get WEBHOOK",
  "webhook update WEBHOOK --url https://example.org/ --type * --all-rooms --enable",
  "webhook delete WEBHOOK",
  "webhook rotate WEBHOOK --grace 1h",
  "webhook deliveries WEBHOOK --limit 1 --cursor c",
  "webhook redeliver WEBHOOK EVENT",
  "webhook test WEBHOOK",
  "template get t",
  "template request t --image docker://r.example/i --step s --build-arg a=b --egress e --registry-auth FILE --secret s=FILE --min-memory 256 --memory 512 --disk 2048 --start --ready r --description d --no-cache --no-wait",
  "template cancel t bld_01KG9YS7G0B5H8K3M6P9R2T4WY",
  "template follow t bld_01KG9YS7G0B5H8K3M6P9R2T4WY --after 1 --no-follow",
  "template remove t --own",
  "audit r --since 1 --until 2 --event e --agent a --outcome error --source web --actor k --request q --trace t --record v --no-reads --order asc --limit 1 --cursor c",
  "audit --room r --since 1 --until 2 --event e --agent a --outcome error --source web --actor k --request q --trace t --record v --no-reads --order asc --limit 1 --cursor c",
  "audit summary r --since 1 --until 2 --event e --agent a --outcome error --source web --actor k --request q --trace t --record v --no-reads",
  "audit summary --room r --since 1 --until 2 --event e --agent a --outcome error --source web --actor k --request q --trace t --record v --no-reads",
  "audit follow r --after 1 --no-follow",
  "audit follow --org --after 1 --no-follow",
  "audit verify r",
  "audit verify",
].map((line) => line.split(" "));

/** Operations of an operator on the host, on the service's own data: the command, and the options that correspond to the fields. */
const ON_HOST: Partial<Record<Name, { command: string; fields: Record<string, string> }>> = {
  org_create: { command: "org create", fields: { name: "--name", plan: "--plan" } },
  key_create: {
    command: "key create",
    fields: {
      org_id: "--org",
      name: "--name",
      scopes: "--scope",
      room_ids: "--room",
      agent_id: "--agent",
      expires_in_seconds: "--expires-in",
    },
  },
  key_list: { command: "key list", fields: { org_id: "--org" } },
  key_rotate: { command: "key rotate", fields: { key_id: "key-id", grace_seconds: "--grace" } },
  key_revoke: { command: "key revoke", fields: { key_id: "key-id" } },
  ssh_key_add: {
    command: "org ssh-key add",
    fields: { org_id: "--org", public_key: "file", name: "--name", expires_in_seconds: "--expires-in" },
  },
  ssh_key_list: { command: "org ssh-key list", fields: { org_id: "--org" } },
  ssh_key_remove: { command: "org ssh-key remove", fields: { org_id: "--org", ssh_key_id: "ssh-key-id" } },
};

const NO_COMMAND: Partial<Record<Name, string>> = {
  metrics: "it is for Prometheus, which asks for it itself",
  openapi_get: "it is a document for programs, and /docs shows it to people",
  terminal_create: "`roomd shell` opens it, which needs a terminal: test/vm/shell.test.ts",
  live_socket: "a page of the hub carries its streams over one WebSocket",
  room_now:
    "pages of the hub follow it; `roomd waits`, `roomd execution list` and `roomd room overview` print the same state",
  terminal_attach: "`roomd shell` attaches by WebSocket: test/vm/shell.test.ts",
  screen_view: "a viewer connects by WebSocket: `roomd screen --ticket` makes its ticket",
  terminal_watch:
    "`roomd terminal watch` shows a terminal until its end: test/unit/cli/commands/sandbox/terminal-watch.test.ts",
  execution_stdin: "`roomd exec` passes on what is piped in: test/unit/cli/commands/exec/exec.test.ts",
};

const JSON_TEXT = "the same as a JSON string, for callers that have no other spelling";
const ARGV = "`-- sh -c LINE` is the same";
const STDIN = "standard input is passed on as it comes: test/unit/cli/commands/exec/exec.test.ts";
const ALL_ON_HOST = "on the host all of them are listed";

/** By `operation.field`, or `field` wherever it is. */
const NO_OPTION: Record<string, string> = {
  "room_fork.cids": "it says what is so without it",
  env_json: JSON_TEXT,
  egress_allowlist_json: JSON_TEXT,
  argv_json: JSON_TEXT,
  arrivals_json: JSON_TEXT,
  "sandbox_exec.command": ARGV,
  "execution_start.command": ARGV,
  "sandbox_exec.wait_ms": "`--background` leaves a command running without waiting for it",
  "sandbox_exec.stdin": STDIN,
  "sandbox_exec.stdin_b64": STDIN,
  "execution_start.stdin": STDIN,
  "execution_start.stdin_b64": STDIN,
  "fs_write.content_b64":
    "`roomd drive write` without a text sends standard input: test/unit/cli/commands/drive/drive.test.ts",
  "org_sandbox_list.room_id": "`roomd sandbox list ROOM` lists those of a room",
  "key_list.limit": ALL_ON_HOST,
  "key_list.cursor": ALL_ON_HOST,
  "key_rotate.org_id": "a key_id is one organization's only",
  "key_revoke.org_id": "a key_id is one organization's only",
};

const ANSWER = { items: [{ source: "w", message_id: "m", payload: "hi" }], next_cursor: null, text: "", ok: true };
const MORE = {
  checks: [],
  sandboxes_destroyed: [],
  drive: {},
  topics: [],
  replaces: {},
  totals: {},
  groups: [],
  messages: [],
  waits: [],
  cycles: [],
  open: [],
  other: {},
};

/** Ends a watch: an interrupted one is continued. */
const WATCH_END = { type: "error", code: "sandbox_not_found", detail: "Destroyed.", retryable: false };

/** Operations on a person's account require a web session, which the command line does not have. */
const named = (Object.entries(operations) as [Name, Operation][]).filter(([, { access }]) => access !== "account");
const requested = new Map<Name, Set<string>>();

/** The operation of a request; of two that fit, the one with fewer parameters. */
function operationOf({ method, path }: Seen): [Name, Operation] {
  const [pathname = ""] = path.split("?");
  const fits = named.filter(([, each]) => {
    const pattern = each.path.replace(/\{\w+\*\}/, ".+").replace(/\{\w+\}/g, "[^/]+");
    return each.method === method && new RegExp(`^${pattern}$`).test(pathname);
  });
  const parameters = ([, each]: [Name, Operation]) => Object.keys(each.params.properties).length;
  const found = fits.sort((a, b) => parameters(a) - parameters(b))[0];
  if (!found) throw new Error(`${method} ${path} is no operation`);
  return found;
}

function note(seen: Seen): void {
  const [name, { params }] = operationOf(seen);
  const fields = requested.get(name) ?? new Set();
  requested.set(name, fields);
  const inQuery = new URL(seen.path, "http://stand.in").searchParams.keys();
  for (const field of [...Object.keys(params.properties), ...inQuery, ...Object.keys(seen.body ?? {})]) {
    fields.add(field);
  }
}

beforeAll(async () => {
  using directory = scratch();
  const file = join(directory.path, "file");
  const picture = join(directory.path, "picture");
  const messages = join(directory.path, "messages");
  writeFileSync(file, "content");
  writeFileSync(messages, '{"destination": "w"}\n');
  await using service = await standIn((seen) => {
    note(seen);
    if (seen.path.includes("/files/watch?")) return Response.json(WATCH_END);
    return Response.json({ ...ANSWER, ...MORE });
  });
  for (const [name, value] of Object.entries(service.env)) vi.stubEnv(name, value);
  const printed: string[] = [];
  const keep = (text: unknown, done?: unknown) => {
    printed.push(String(text));
    if (typeof done === "function") done();
    return true;
  };
  vi.spyOn(process.stdout, "write").mockImplementation(keep);
  vi.spyOn(process.stderr, "write").mockImplementation(keep);
  const refused: string[] = [];
  const files: Record<string, string> = { PNG: picture, MESSAGES: messages };
  for (const line of LINES) {
    printed.length = 0;
    const words = line.map((word) => files[word] ?? word.replace(/^(\w+=)?FILE$/, `$1${file}`));
    const status = await runCommandLine(words, makeProgram);
    if (status === 2 || printed.join("").includes("unknown option")) refused.push(`${line.join(" ")}: ${printed}`);
  }
  vi.restoreAllMocks();
  expect(refused).toEqual([]);
});

afterAll(() => void vi.unstubAllEnvs());

const fieldsOf = ({ params, query, body }: Operation) =>
  [params, query, ...(body === null || body === "bytes" ? [] : [body])].flatMap((each) => Object.keys(each.properties));

test("every operation is carried out by a command", () => {
  const missing = named
    .map(([name]) => name)
    .filter((name) => !requested.has(name) && !ON_HOST[name] && !NO_COMMAND[name]);
  expect(missing).toEqual([]);
  expect(Object.keys(NO_COMMAND).filter((name) => requested.has(name as Name) || ON_HOST[name as Name])).toEqual([]);
});

test("every field of every operation is reached by an option or an argument", () => {
  const known = (name: Name) => requested.get(name) ?? new Set(Object.keys(ON_HOST[name]?.fields ?? {}));
  const reaches = (name: Name, field: string) => known(name).has(field);
  const excused = (name: Name, field: string) => NO_OPTION[`${name}.${field}`] ?? NO_OPTION[field];
  const all = named
    .filter(([name]) => !NO_COMMAND[name])
    .flatMap(([name, each]) => fieldsOf(each).map((field) => [name, field] as const));
  expect(all.filter(([name, field]) => !reaches(name, field) && !excused(name, field))).toEqual([]);
  const used = all
    .filter(([name, field]) => !reaches(name, field))
    .flatMap(([name, field]) => [`${name}.${field}`, field]);
  expect(Object.keys(NO_OPTION).filter((key) => !used.includes(key))).toEqual([]);
});

test("the host's own commands have those options", () => {
  const root = makeProgram(() => {});
  for (const { command, fields } of Object.values(ON_HOST)) {
    const found = command.split(" ").reduce((at, word) => at.commands.find((each) => each.name() === word) ?? at, root);
    const words = [...found.options.map(({ long }) => long), ...found.registeredArguments.map((each) => each.name())];
    expect(words).toEqual(expect.arrayContaining(Object.values(fields)));
    expect(`${command} ${found.name()}`).toBe(`${command} ${command.split(" ").at(-1)}`);
  }
});
