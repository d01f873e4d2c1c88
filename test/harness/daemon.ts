/**
 * Daemons for tests: the built binary with its own directories and ports, driven as clients drive it. Each is a separate process; it is
 * ended by its pid, and `leftovers` lists its leftovers.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import type { Problem } from "../../shared/api/errors.ts";
import { CAPPED } from "../../shared/api/people/plans.ts";
import { undocumented } from "./documented.ts";
import { newDatabase } from "./durability/new-database.ts";
import { handOnVerified, receiveVerified } from "./durability/verified.ts";
import { longTurns, MAX_TURN_MS, turnsEnvironment } from "./event-loop/turns.ts";
import { freePort } from "./free-port.ts";
import type { Json } from "./json.ts";
import { filesWithoutSecrets, secretsIn, secretsInFiles } from "./secrets.ts";

export type { Json } from "./json.ts";

const STARTING = ["creating", "starting"];

/** Environment of a daemon whose sandboxes never start: there is no virtual machine monitor. */
export const NO_GUESTS = { ROOMD_ACCELERATION: "tcg", ROOMD_POOL_SIZE: "0", ROOMD_HOST_QEMU: "/bin/false" };

/** Also of another commit, to compare it with. */
export const BINARY = resolve(process.env.ROOMD_TEST_BINARY ?? "dist/roomd");
/** Directory in which `packaging/check` leaves the template that all tests share. */
export const SHARED_TEMPLATES = join(process.env.ROOMD_TEST_DIR ?? "/var/tmp/roomd-test", "data", "templates");

/** Caps of the first organization's plan, which no test reaches. */
const WIDE_CAPS = Object.fromEntries(
  CAPPED.flatMap((resource) =>
    ["SOFT", "HARD"].map((kind) => [`ROOMD_PLANS_FREE_${resource.toUpperCase()}_${kind}_CAP`, "1000000"]),
  ),
);

/** Nor to these rates. */
const WIDE_RATES = Object.fromEntries(
  ["", "GUEST_", "PORT_"].flatMap((prefix) => [
    [`ROOMD_LIMITS_${prefix}REQUESTS_PER_SECOND`, "20000"],
    [`ROOMD_LIMITS_${prefix}REQUESTS_AT_ONCE`, "40000"],
  ]),
);

const START_DEADLINE_MS = 60_000;
const STOP_DEADLINE_MS = 30_000;

export interface Answer {
  status: number;
  headers: Headers;
  body: Json;
}

export interface TestDaemonOptions {
  /** Whether sandboxes can be created; needs root and the shared template. */
  guests?: boolean;
  /** Variables of the daemon's environment, over the usual ones. */
  env?: Record<string, string>;
  /** The program that runs as the daemon, in place of the binary. */
  program?: readonly [string, ...string[]];
  /** Prepares the daemon's environment and files before its first start. */
  prepare?(daemon: TestDaemon): void | Promise<void>;
}

export class TestDaemon {
  readonly home: string;
  readonly dataDir: string;
  readonly runtimeDir: string;
  readonly env: Record<string, string>;
  url = "";
  /** The line with which it reported readiness. */
  ready = "";
  apiKey = "";
  orgId = "";
  operatorKey = "";
  readonly #program: readonly [string, ...string[]];
  readonly #hasGuests: boolean;
  #process: ChildProcess | null = null;
  #log: string[] = [];

  private constructor(options: TestDaemonOptions) {
    // Sockets have short paths only: not below a deep temporary directory.
    this.home = mkdtempSync("/tmp/roomd-t-");
    this.#program = options.program ?? [BINARY];
    this.#hasGuests = options.guests ?? false;
    this.dataDir = join(this.home, "data");
    this.runtimeDir = join(this.home, "run");
    mkdirSync(this.dataDir);
    // The users of guests' processes must get to their files, also to those of a template from before they had users.
    chmodSync(this.home, 0o711);
    if (options.guests) for (const above of [SHARED_TEMPLATES, dirname(SHARED_TEMPLATES)]) chmodSync(above, 0o711);
    if (options.guests) symlinkSync(SHARED_TEMPLATES, join(this.dataDir, "templates"));
    this.env = {
      PATH: process.env.PATH ?? "",
      ROOMD_DATA_DIR: this.dataDir,
      ROOMD_RUNTIME_DIR: this.runtimeDir,
      ROOMD_HTTP_LISTEN: "127.0.0.1:0",
      ROOMD_SSH_LISTEN: "127.0.0.1:0",
      ROOMD_WEB_ENABLED: "true",
      // All requests come from one address here, also those with invalid keys.
      ROOMD_LIMITS_FAILED_LOGINS: "0",
      // Most tests are of other things than plans and rates.
      ...WIDE_CAPS,
      ...WIDE_RATES,
      // The pool has the size that a test sets, independent of the number of sandboxes created.
      ROOMD_POOL_MOST: "0",
      // Detection takes seconds, and the template was built with the acceleration that it would detect.
      ...(options.guests ? { ROOMD_ACCELERATION: process.env.ROOMD_ACCELERATION ?? sharedAcceleration() } : {}),
      ...options.env,
    };
  }

  /** URL for browsers: on loopback by name. */
  get webUrl(): string {
    return this.url.replace("//127.0.0.1", "//localhost");
  }

  /** Initializes a fresh service and starts it. */
  static async start(options: TestDaemonOptions = {}): Promise<TestDaemon> {
    const daemon = new TestDaemon(options);
    try {
      await options.prepare?.(daemon);
      await daemon.#joinSharedPostgres();
      const init = await daemon.cli(["init", "--json"]);
      if (init.status !== 0) throw new Error(`roomd init failed: ${init.stderr}`);
      const made = JSON.parse(init.stdout) as { org_id: string; api_key: string; operator_key: string };
      daemon.apiKey = made.api_key;
      daemon.orgId = made.org_id;
      daemon.operatorKey = made.operator_key;
      if (options.guests) receiveVerified(daemon);
      await daemon.serve();
      return daemon;
    } catch (error) {
      await daemon.stop();
      throw error;
    }
  }

  /** Starts a daemon that joins, with this command, the service of another as a host: it has the same keys. */
  static async join(first: TestDaemon, options: TestDaemonOptions, command: string[]): Promise<TestDaemon> {
    const daemon = new TestDaemon(options);
    try {
      await options.prepare?.(daemon);
      const { status, stderr } = await daemon.cli(command);
      if (status !== 0) throw new Error(`roomd ${command[0]} ${command[1]} failed: ${stderr}`);
      daemon.apiKey = first.apiKey;
      daemon.orgId = first.orgId;
      daemon.operatorKey = first.operatorKey;
      await daemon.serve();
      return daemon;
    } catch (error) {
      await daemon.stop();
      throw error;
    }
  }

  /** If every daemon is to be a cluster member, makes this one the first host of its cluster. */
  async #joinSharedPostgres(): Promise<void> {
    const url = process.env.ROOMD_TEST_CLUSTER_URL;
    if (url === undefined || this.env.ROOMD_CLUSTER_URL !== undefined) return;
    this.env.ROOMD_CLUSTER_URL = await newDatabase(url);
    this.env.ROOMD_CLUSTER_LISTEN = `127.0.0.1:${await freePort()}`;
    const { status, stderr } = await this.cli(["cluster", "init"]);
    if (status !== 0) throw new Error(`roomd cluster init failed: ${stderr}`);
  }

  get pid(): number {
    const pid = this.#process?.pid;
    if (pid === undefined) throw new Error("the daemon does not run");
    return pid;
  }

  /** The daemon's log so far. */
  get log(): string {
    return this.#log.join("\n");
  }

  /** The log's entries with these fields. */
  logged(fields: Json): Json[] {
    const entries = this.#log.flatMap((line): Json[] => (line.startsWith("{") ? [JSON.parse(line)] : []));
    return entries.filter((entry) => Object.entries(fields).every(([name, value]) => entry[name] === value));
  }

  /** Starts the daemon's process and waits until it takes requests. */
  async serve(): Promise<void> {
    const [program, ...args] = this.#program;
    const env = { ...turnsEnvironment(this.home), ...this.env };
    const child = spawn(program, [...args, "serve"], { env, stdio: ["ignore", "pipe", "pipe"] });
    this.#process = child;
    createInterface({ input: child.stderr }).on("line", (line) => this.#log.push(line));
    const ready = Promise.withResolvers<string>();
    createInterface({ input: child.stdout }).on("line", (line) => {
      const url = /https?:\/\/\S+/.exec(line)?.[0];
      if (url) this.ready = line;
      if (url) ready.resolve(url.replace(/\/$/, ""));
    });
    child.once("exit", (code, signal) => ready.reject(new Error(`the daemon ended (${code ?? signal}):\n${this.log}`)));
    const timer = setTimeout(
      () => ready.reject(new Error(`the daemon was not ready:\n${this.log}`)),
      START_DEADLINE_MS,
    );
    try {
      this.url = await ready.promise;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Sends a signal to the daemon and waits for its end. */
  async end(signal: NodeJS.Signals): Promise<number | null> {
    const child = this.#process;
    if (!child || child.exitCode !== null || child.signalCode !== null) return null;
    const exited = new Promise<number | null>((done) => child.once("exit", (code) => done(code)));
    child.kill(signal);
    const timer = setTimeout(() => child.kill("SIGKILL"), STOP_DEADLINE_MS);
    const code = await exited;
    clearTimeout(timer);
    this.#process = null;
    return code;
  }

  /** Whether its process runs. */
  get runs(): boolean {
    return this.#process !== null && this.#process.exitCode === null && this.#process.signalCode === null;
  }

  /** Exit code of its process; null while it runs, or if a signal ended it. */
  get exitCode(): number | null {
    return this.#process?.exitCode ?? null;
  }

  async restart(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    await this.end(signal);
    await this.serve();
  }

  /** A call with the API key; `body` is sent as JSON. */
  async api(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
    signal?: AbortSignal,
  ): Promise<Answer> {
    const response = await fetch(this.url + path, {
      method,
      ...(signal ? { signal } : {}),
      headers: {
        authorization: `Bearer ${this.apiKey}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    return await answerOf(response, method);
  }

  /** A call that must succeed. */
  async ok(method: string, path: string, body?: unknown): Promise<Json> {
    const answer = await this.api(method, path, body);
    if (answer.status >= 300) {
      throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}\n${this.log.slice(-4000)}`);
    }
    return answer.body;
  }

  /** A call that must fail. */
  async problem(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Problem> {
    const answer = await this.api(method, path, body, headers);
    if (answer.status < 400)
      throw new Error(`${method} ${path} succeeded: ${JSON.stringify(answer.body).slice(0, 2000)}`);
    return answer.body as Problem;
  }

  async room(roomId: string): Promise<Json> {
    return await this.ok("POST", "/v1/rooms", { room_id: roomId });
  }

  async sandbox(roomId: string, agentId: string, guestCid: number, more: Record<string, unknown> = {}): Promise<Json> {
    let made = await this.ok("POST", `/v1/rooms/${roomId}/sandboxes/from-template`, {
      agent_id: agentId,
      guest_cid: guestCid,
      memory_mib: 256,
      ...more,
    });
    // An emulated guest may take longer than the call waits if others run concurrently.
    for (let tries = 0; tries < 3 && STARTING.includes(made.state); tries++)
      made = await this.ok("GET", `/v1/rooms/${roomId}/sandboxes/${agentId}?wait_ms=50000`);
    return made;
  }

  /** Runs a shell line in a sandbox; returns its trimmed standard output, and throws unless it exits with 0. */
  async sh(roomId: string, agentId: string, line: string): Promise<string> {
    const done = await this.exec(roomId, agentId, { command: line });
    if (done.exit_code !== 0) throw new Error(`${line}: ${JSON.stringify(done).slice(0, 4000)}`);
    return String(done.stdout).trim();
  }

  async exec(roomId: string, agentId: string, body: Record<string, unknown>): Promise<Json> {
    return await this.ok("POST", `/v1/rooms/${roomId}/sandboxes/${agentId}/exec`, body);
  }

  /** The CLI, as an operator on this host or as a client of this daemon. */
  async cli(
    args: string[],
    input?: string,
    env: Record<string, string> = {},
    /** Called with the whole standard output so far. */
    printed: (stdout: string) => void = () => {},
  ): Promise<{ status: number; stdout: string; stderr: string }> {
    const child = spawn(BINARY, args, {
      env: { ...this.env, ...(this.url ? { ROOMD_URL: this.url } : {}), ROOMD_API_KEY: this.apiKey, ...env },
      stdio: [input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
    });
    child.stdin?.end(input);
    const out = { stdout: "", stderr: "" };
    child.stdout?.on("data", (chunk) => {
      out.stdout += chunk;
      printed(out.stdout);
    });
    child.stderr?.on("data", (chunk) => {
      out.stderr += chunk;
    });
    const status = await new Promise<number>((done) => child.once("close", (code) => done(code ?? -1)));
    return { status, ...out };
  }

  /** Processes, mounts and sockets that belong to guests of this daemon; empty when all is gone. */
  leftovers(): string[] {
    const found: string[] = [];
    for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
      const line = readQuietly(`/proc/${pid}/cmdline`).replaceAll("\0", " ");
      if (line.includes(this.home) && Number(pid) !== this.#process?.pid)
        found.push(`process ${pid}: ${line.slice(0, 120)}`);
    }
    for (const line of readFileSync("/proc/self/mounts", "utf8").split("\n")) {
      if (line.includes(this.home)) found.push(`mount ${line}`);
    }
    for (const directory of [
      join(this.runtimeDir, "g"),
      join(this.dataDir, "sandboxes"),
      join(this.dataDir, "rooms"),
      join(this.runtimeDir, "t"),
      join(this.dataDir, "trials"),
      join(this.runtimeDir, "f"),
      join(this.dataDir, "films"),
    ]) {
      if (existsSync(directory)) found.push(...readdirSync(directory).map((name) => `${directory}/${name}`));
    }
    return found;
  }

  /** Secrets in the database's files, in logs, and in all of the daemon's output; empty if there is no leak. */
  leaks(): string[] {
    return [...secretsInFiles(filesWithoutSecrets(this.dataDir)), ...secretsIn("the daemon's log", this.log)];
  }

  /** Ends the daemon and every guest of it, and removes its directories. Throws if it has left a secret, or had a long turn. */
  async stop(): Promise<void> {
    await this.end("SIGTERM");
    if (this.#hasGuests) handOnVerified(this);
    const leaks = this.leaks();
    const turns = longTurns(this.home);
    for (const line of this.leftovers()) {
      const pid = /^process (\d+):/.exec(line)?.[1];
      if (pid) killQuietly(Number(pid));
    }
    for (const line of this.leftovers()) {
      const mountPoint = /^mount \S+ (\S+)/.exec(line)?.[1];
      if (mountPoint) spawnSync("umount", ["--lazy", mountPoint]);
    }
    rmSync(this.home, { recursive: true, force: true });
    if (leaks.length > 0) throw new Error(`the daemon has left secrets:\n${leaks.join("\n")}`);
    if (turns.length > 0)
      throw new Error(`turns of over ${MAX_TURN_MS} ms:\n${turns.map((turn) => JSON.stringify(turn)).join("\n")}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

/** Throws on headers that the OpenAPI document does not list for a request of this method. */
export async function answerOf(response: Response, method?: string): Promise<Answer> {
  const faults = method === undefined ? [] : undocumented(method, response.url, response);
  if (faults.length > 0) throw new Error(`${method} ${response.url}: ${response.status}: ${faults.join(", ")}`);
  const text = await response.text();
  const json = /[/+]json\b/.test(response.headers.get("content-type") ?? "");
  return { status: response.status, headers: response.headers, body: json && text !== "" ? JSON.parse(text) : text };
}

/** Why guests cannot run here, or null. Tests that need them print it when they are skipped. */
export function whyNoGuests(): string | null {
  if (process.getuid?.() !== 0) return "guests need root";
  if (!existsSync(join(SHARED_TEMPLATES, "default", "current"))) return "there is no template: run packaging/check";
  return null;
}

function sharedAcceleration(): string {
  const manifest = readFileSync(join(SHARED_TEMPLATES, "default", "current", "manifest.json"), "utf8");
  return (JSON.parse(manifest) as { hardware: { acceleration: string } }).hardware.acceleration;
}

function readQuietly(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has exited in the meantime.
  }
}
