/**
 * The layers: a file imports its own folder or a lower row, never up, never a neighbour on its row.
 * The table below is the one of daemon/README.md.
 */
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { codeOf, isOfDaemon, type Source } from "./sources.ts";

/** From the bottom up; folders on one row are strangers to each other. */
const ROWS: readonly (readonly string[])[] = [
  // The built hub is embedded as a file, and so are the documents.
  ["shared", "packaging", "dist", "docs", "sdk", "daemon/wire"],
  ["daemon/core", "guest-agent", "daemon/web"],
  ["daemon/db", "daemon/host"],
  ["daemon/domain/audit", "daemon/domain/traces", "daemon/domain/backups", "daemon/cluster"],
  ["daemon/domain/orgs", "daemon/domain/mail"],
  ["daemon/domain/users", "daemon/domain/templates", "daemon/domain/agents"],
  [
    "daemon/domain/drive",
    "daemon/domain/fabric",
    "daemon/domain/barriers",
    "daemon/domain/ports",
    "daemon/domain/egress",
    "daemon/domain/terminals",
    "daemon/domain/screen",
  ],
  ["daemon/domain/sandboxes"],
  [
    "daemon/domain/rooms",
    "daemon/domain/service",
    "daemon/domain/ssh",
    "daemon/domain/oauth",
    "daemon/domain/billing",
    "daemon/domain/overview",
    "daemon/domain/webhooks",
  ],
  ["daemon/edge"],
  ["daemon/compose"],
  ["daemon/cli"],
  // The entry point of the binary.
  ["daemon"],
];

/** Each implements one protocol, and only the composition imports more than one of them. */
const DOORS = ["http", "mcp", "ssh", "web", "guest"].map((door) => `daemon/edge/${door}`);

const SDK = "sdk/typescript/src";
const CODE = codeOf("shared", "daemon", "guest-agent", SDK);

const isIn = (path: string, folder: string) => path.startsWith(`${folder}/`);
const doorOf = (path: string) => DOORS.find((door) => isIn(path, door));

/** The row and folder that a path belongs to. Throws for a folder that has no row yet. */
function placeOf(path: string): { row: number; folder: string } {
  const folders = path.split("/").slice(0, -1);
  // A layer of the daemon is a folder in daemon/, a noun is a folder in daemon/domain/; elsewhere the first folder counts.
  const depth = folders[0] !== "daemon" ? 1 : folders[1] === "domain" ? 3 : 2;
  const folder = folders.slice(0, depth).join("/");
  const row = ROWS.findIndex((folders) => folders.includes(folder));
  if (row === -1) throw new Error(`${folder}/ has no row: give it one here and in daemon/README.md`);
  return { row, folder };
}

/** All imports of a file, types included; the file of a worker counts. */
function importsOf({ text }: Source): string[] {
  const patterns = [
    /(?:^|;)\s*(?:import|export)\b[^;"'`]*?\bfrom\s*["']([^"']+)["']/gm,
    /(?:^|;)\s*import\s*["']([^"']+)["']/gm,
    /\bimport\(\s*["']([^"']+)["']/g,
    /\bnew URL\(\s*["'](\.[^"']+)["']\s*,\s*import\.meta\.url/g,
  ];
  return patterns.flatMap((pattern) => [...text.matchAll(pattern)].map((match) => String(match[1])));
}

const isOurs = (specifier: string) => specifier.startsWith(".");

/** Every import from a file of ours to another, by path. */
const EDGES = CODE.flatMap((source) =>
  importsOf(source)
    .filter(isOurs)
    .map((specifier) => ({ from: source.path, to: join(dirname(source.path), specifier) })),
);

function violations(breaks: (from: string, to: string) => boolean): string[] {
  return EDGES.filter(({ from, to }) => breaks(from, to)).map(({ from, to }) => `${from} imports ${to}`);
}

describe("layers", () => {
  test("the scan finds imports", () => {
    expect(EDGES.length).toBeGreaterThan(50);
  });

  test("no file imports a higher row", () => {
    expect(violations((from, to) => placeOf(to).row > placeOf(from).row)).toEqual([]);
  });

  test("no file imports a neighbour on its row", () => {
    const isNeighbour = (from: string, to: string) => {
      const [a, b] = [placeOf(from), placeOf(to)];
      return a.row === b.row && a.folder !== b.folder;
    };
    expect(violations(isNeighbour)).toEqual([]);
  });

  test("a noun's dependencies are in its deps.ts, and none of its files imports its own index.ts", () => {
    const nouns = CODE.map(({ path }) => /^(daemon\/domain\/\w+)\/index\.ts$/.exec(path)?.[1]).filter(
      (it) => it !== undefined,
    );
    expect(nouns.length).toBeGreaterThan(10);
    expect(nouns.filter((noun) => !CODE.some(({ path }) => path === `${noun}/deps.ts`))).toEqual([]);
    expect(violations((from, to) => nouns.some((noun) => to === `${noun}/index.ts` && isIn(from, noun)))).toEqual([]);
  });

  test("the doors never import each other, and nothing else of the edge imports a door", () => {
    const isDoorsSecret = (from: string, to: string) => isIn(from, "daemon/edge") && doorOf(to) !== undefined;
    expect(violations((from, to) => isDoorsSecret(from, to) && doorOf(from) !== doorOf(to))).toEqual([]);
  });

  test("the guest agent imports the protocol, backoff, the version, duration and trace formats, and nothing of the host", () => {
    const known = ["backoff", "version", "duration", "traceparent"].map((name) => `shared/${name}.ts`);
    const isKnown = (to: string) => isIn(to, "guest-agent") || isIn(to, "shared/agent-protocol") || known.includes(to);
    expect(violations((from, to) => isIn(from, "guest-agent") && !isKnown(to))).toEqual([]);
  });

  test("the daemon imports no code of the hub that only browsers run, of which house rules do not hold", () => {
    const isForBrowsers = (to: string) => isIn(to, "daemon/web") && !to.endsWith(".css") && !isOfDaemon(to);
    expect(violations((from, to) => isOfDaemon(from) && isForBrowsers(to))).toEqual([]);
  });

  test("the SDK imports no other code of the repository, and only the command line imports it", () => {
    const isStranger = (from: string, to: string) => isIn(from, SDK) !== isIn(to, SDK) && !isIn(from, "daemon/cli");
    expect(violations((from, to) => (isIn(from, SDK) || isIn(to, SDK)) && isStranger(from, to))).toEqual([]);
  });

  test("the command line has no other client of the API", () => {
    // MCP, OAuth, and the health of this host's own daemon, for whatever name its certificate is.
    const others = ["commands/account/token-endpoint", "commands/mcp", "host/setup/daemon", "kit/web", "npm-client/web"]
      .map((name) => `daemon/cli/${name}.ts`)
      .sort();
    const fetches = ({ path, text }: Source) => isIn(path, "daemon/cli") && /\bfetch(From)?\(/.test(text);
    expect(CODE.filter(fetches).map(({ path }) => path)).toEqual(others);
  });

  test("the wire imports nothing else: other processes than the daemon use it", () => {
    expect(violations((from, to) => isIn(from, "daemon/wire") && !isIn(to, "daemon/wire"))).toEqual([]);
  });

  test("the agent protocol imports nothing else", () => {
    expect(violations((from, to) => isIn(from, "shared/agent-protocol") && !isIn(to, "shared/agent-protocol"))).toEqual(
      [],
    );
  });
});

describe("exclusive access", () => {
  /** The files that break a rule about imports or mentioned names. */
  const offenders = (breaks: (source: Source) => boolean) => CODE.filter(breaks).map(({ path }) => path);
  const imports = (source: Source, ...modules: string[]) => importsOf(source).some((each) => modules.includes(each));

  test("the agent protocol uses no packages", () => {
    const packages = (source: Source) => importsOf(source).some((each) => !isOurs(each) && !each.startsWith("node:"));
    expect(offenders((source) => isIn(source.path, "shared/agent-protocol") && packages(source))).toEqual([]);
  });

  test("one file opens the database, and the thread that writes its log into it", () => {
    const files = ["daemon/db/checkpoint-thread.ts", "daemon/db/client.ts"];
    expect(offenders((source) => imports(source, "bun:sqlite"))).toEqual(files);
  });

  test("reads and tasks that run in threads do not import daemon state", () => {
    const types = /(?:^|;)\s*(?:import|export) type\b[^;]*;/gm;
    const values = new Map(
      CODE.map((source) => {
        const used = importsOf({ ...source, text: source.text.replaceAll(types, "") });
        return [source.path, used.filter(isOurs).map((specifier) => join(dirname(source.path), specifier))];
      }),
    );
    const roots = CODE.map(({ path }) => path).filter((path) => /^daemon\/.*\/(reads|tasks)\.ts$/.test(path));
    const inCompose = roots.filter((path) => path.startsWith("daemon/compose/"));
    const reached = new Set(roots.filter((path) => !inCompose.includes(path)));
    expect(reached.size).toBeGreaterThan(3);
    for (const path of reached) for (const used of values.get(path) ?? []) reached.add(used);
    // Their state belongs to one connection, one turn, or the thread's clock.
    const own = ["daemon/db/client.ts", "daemon/core/concurrency/next-turn.ts", "daemon/core/clock.ts"];
    const holds =
      /^(?:export )?(?:let\b|const \w+(?:: [^=]+)? = new (?!Intl\.|TextDecoder|TextEncoder|RegExp)(?!Set\(\[|Map\(\[)\w+)/m;
    const holders = CODE.filter(({ path, text }) => reached.has(path) && !own.includes(path) && holds.test(text));
    expect(holders.map(({ path }) => path)).toEqual([]);
    const folders = ["daemon/host/", "daemon/cluster/", "daemon/edge/", "daemon/compose/", "daemon/core/loop/"];
    const homes = new Set(roots.map((path) => dirname(path)));
    const unexpected = [...reached].filter((path) => !homes.has(dirname(path)));
    expect(unexpected.filter((path) => folders.some((folder) => path.startsWith(folder)))).toEqual([]);
  });

  test("one file connects to PostgreSQL, and loads the client lazily", () => {
    const clients = ["pg", "pg-pool", "postgres", "drizzle-orm/node-postgres", "drizzle-orm/postgres-js"];
    const client = "daemon/cluster/session.ts";
    expect(offenders((source) => imports(source, ...clients))).toEqual([client]);
    const { text = "" } = CODE.find(({ path }) => path === client) ?? {};
    expect(text.match(/^import .*"pg"/m)).toBeNull();
    expect(text).toContain('await import("pg")');
  });

  test("the state of a sandbox is changed only by its supervisor, including its ending", () => {
    const changes = ({ path, text }: Source) =>
      isIn(path, "daemon/domain/sandboxes") && /\.become(UnlessPast)?\(|updateSandbox\(/.test(text);
    const files = ["lifecycle/published-row", "lifecycle/supervisor", "lifecycle/teardown", "store"].map(
      (name) => `daemon/domain/sandboxes/${name}.ts`,
    );
    expect(offenders(changes)).toEqual(files);
  });

  test("one file writes organizations, keys, SSH keys and plans", () => {
    const STORES = ["daemon/domain/orgs/store.ts", "daemon/domain/orgs/ssh-keys-store.ts"];
    const TABLES = "orgs|apiKeys|sshKeys";
    const writes = new RegExp(
      `\\.(insert|update|delete)\\(\\s*(\\w+\\.)?(${TABLES})\\b|\\b(INTO|UPDATE|DELETE\\s+FROM)\\s+"?(orgs|api_keys|ssh_keys)\\b`,
    );
    const ofDaemon = ({ path }: Source) => isIn(path, "daemon");
    expect(offenders((source) => ofDaemon(source) && writes.test(source.text)).sort()).toEqual([...STORES].sort());
    const writers = STORES.flatMap((path) => {
      const functions = (CODE.find((source) => source.path === path)?.text ?? "").split(/^export function /m).slice(1);
      return functions.filter((body) => writes.test(body)).map((body) => String(/^\w+/.exec(body)));
    });
    expect(writers).toContain("insertKey");
    const named = new RegExp(`\\b(${writers.join("|")})\\b`);
    const callers = offenders((source) => ofDaemon(source) && !STORES.includes(source.path) && named.test(source.text));
    // The second ends keys within a change of the first.
    expect(callers).toEqual(["daemon/domain/orgs/changes.ts", "daemon/domain/orgs/ssh-keys-made.ts"]);
  });

  // The client's package has the host layer's few parts that a user's machine needs, with Node's own means.
  const MAY_CALL_THE_SYSTEM = ["daemon/host", "guest-agent", "daemon/cli/npm-client"];
  const mayCallTheSystem = ({ path }: Source) => MAY_CALL_THE_SYSTEM.some((folder) => isIn(path, folder));

  test("libc is called by the host layer and the guest agent", () => {
    expect(offenders((source) => !mayCallTheSystem(source) && imports(source, "bun:ffi", "ffi"))).toEqual([]);
  });

  test("processes are started by the host layer and the guest agent", () => {
    const starts = (source: Source) =>
      imports(source, "node:child_process", "child_process") ||
      /\bBun\.(spawn|spawnSync|\$)/.test(source.text) ||
      /\bimport\s*\{[^}]*(\bspawn\b|\bspawnSync\b|\$)[^}]*\}\s*from\s*"bun"/.test(source.text);
    expect(offenders((source) => !mayCallTheSystem(source) && starts(source))).toEqual([]);
  });

  test("the host layer and the guest agent contain no SQL", () => {
    expect(offenders((source) => mayCallTheSystem(source) && imports(source, "drizzle-orm"))).toEqual([]);
  });
});
