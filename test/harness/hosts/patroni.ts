/**
 * PostgreSQL servers of a test that Patroni manages as one service, with synchronous replication required: an etcd and a Patroni with its
 * server for each, all on the loopback, in a separate directory, as an unprivileged user. Only processes that it started are ended.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { freePort } from "../free-port.ts";
import { until } from "../guests.ts";
import { asUser, own, programs } from "./postgres.ts";

const PATRONI = "/usr/bin/patroni";
const ETCD = "/usr/bin/etcd";
const STARTED_MS = 120_000;
/** The shortest TTL that Patroni accepts: a primary that is silent for this long loses its role. */
const TTL_SECONDS = 20;

/** Why Patroni cannot run here; null if it can. */
export function whyNoPatroni(): string | null {
  const missing = [PATRONI, ETCD].filter((program) => !existsSync(program));
  if (programs() === null) missing.push("a PostgreSQL server");
  return missing.length === 0 ? null : `there is no ${missing.join(", no ")}: packaging/install-host --tests`;
}

/** Patroni's report of one member. */
export interface Member {
  name: string;
  role: "leader" | "sync_standby" | "replica" | string;
  state: string;
}

interface Node {
  name: string;
  directory: string;
  port: number;
  api: number;
  patroni: ChildProcess | null;
}

export class PatroniService implements AsyncDisposable {
  readonly directory: string;
  readonly nodes: Node[] = [];
  readonly #password = randomBytes(12).toString("hex");
  #etcd: ChildProcess | null = null;
  #etcdPort = 0;

  private constructor() {
    this.directory = mkdtempSync(join(tmpdir(), "roomd-patroni-"));
    own(this.directory);
  }

  /** Resolves once one is the primary, another its synchronous standby, and a database is there. */
  static async start(count: number): Promise<PatroniService> {
    const made = new PatroniService();
    try {
      await made.#startEtcd();
      for (let index = 1; index <= count; index++) {
        const directory = join(made.directory, `pg-${index}`);
        mkdirSync(directory);
        own(directory);
        const [port, api] = [await freePort(), await freePort()];
        made.nodes.push({ name: `pg-${index}`, directory, port, api, patroni: null });
      }
      for (const { name } of made.nodes) await made.begin(name);
      await made.untilWhole();
      await made.#makeDatabase();
      return made;
    } catch (error) {
      await made[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** The value of `cluster.url`: all servers, of which the primary is used. */
  url(): string {
    const servers = this.nodes.map(({ port }) => `127.0.0.1:${port}`).join(",");
    return `postgres://roomd:${this.#password}@${servers}/roomd?target_session_attrs=primary`;
  }

  /** According to the first member that answers. */
  async members(): Promise<Member[]> {
    for (const { api } of this.nodes) {
      const answer = await fetch(`http://127.0.0.1:${api}/cluster`, { signal: AbortSignal.timeout(2_000) }).catch(
        () => null,
      );
      if (answer?.ok) return ((await answer.json()) as { members: Member[] }).members;
    }
    return [];
  }

  /** Which one is the primary, once one is that is not `former`. */
  async primary(former = ""): Promise<string> {
    return await until(
      "a primary is elected",
      async () => {
        const found = (await this.members()).find(({ role, state }) => role === "leader" && state === "running");
        return found?.name !== former && found?.name;
      },
      STARTED_MS,
    );
  }

  /** Resolves once as many run as `count`, one of them the primary and one its synchronous standby. */
  async untilWhole(count = this.nodes.length): Promise<void> {
    const isRunning = ({ state }: Member) => state === "running" || state === "streaming";
    await until(
      `${count} servers form one cluster`,
      async () => {
        const running = (await this.members()).filter(isRunning);
        const roles = running.map(({ role }) => role);
        return running.length === count && roles.includes("leader") && roles.includes("sync_standby");
      },
      STARTED_MS,
    );
  }

  /** The primary hands over to another member; resolves with the new primary. */
  async switchOver(): Promise<string> {
    const leader = await this.primary();
    const candidate = (await this.members()).find(({ role }) => role === "sync_standby")?.name;
    const answer = await fetch(`http://127.0.0.1:${this.#nodeOf(leader).api}/switchover`, {
      method: "POST",
      body: JSON.stringify({ leader, candidate }),
    });
    if (!answer.ok) throw new Error(`switchover: ${answer.status} ${await answer.text()}`);
    return await this.primary(leader);
  }

  /** Freezes a node: Patroni, the server, and all its processes. Peers get no notification, and connecting clients get no answer. */
  freeze(name: string): void {
    for (const pid of processesBelow(this.#nodeOf(name).directory)) signal(pid, "SIGSTOP");
  }

  thaw(name: string): void {
    for (const pid of processesBelow(this.#nodeOf(name).directory)) signal(pid, "SIGCONT");
  }

  /** The host of a server is lost: all of its processes end simultaneously. */
  async kill(name: string): Promise<void> {
    const node = this.#nodeOf(name);
    this.freeze(name);
    for (const pid of processesBelow(node.directory)) signal(pid, "SIGKILL");
    await until("the node's processes have exited", () => processesBelow(node.directory).length === 0);
    node.patroni = null;
  }

  /** Starts it, also with the data that it had when it was killed. */
  async begin(name: string): Promise<void> {
    const node = this.#nodeOf(name);
    const file = join(node.directory, "patroni.json");
    writeFileSync(file, JSON.stringify(this.#configuration(node)), { mode: 0o600 });
    own(file);
    node.patroni = this.#spawn([PATRONI, file], join(node.directory, "log"));
  }

  /** By the primary, as its superuser. */
  async sql(statement: string, database = "roomd"): Promise<Record<string, unknown>[]> {
    const { port } = this.#nodeOf(await this.primary());
    const user = { user: "postgres", password: this.#password, host: "127.0.0.1", port, database };
    const client = new pg.Client(user);
    await client.connect();
    try {
      return (await client.query(statement)).rows as Record<string, unknown>[];
    } finally {
      await client.end();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { name } of this.nodes) await this.kill(name);
    const etcd = this.#etcd;
    this.#etcd = null;
    const exited = etcd && once(etcd, "exit");
    if (etcd?.kill("SIGKILL")) await exited;
    rmSync(this.directory, { recursive: true, force: true });
  }

  #nodeOf(name: string): Node {
    const node = this.nodes.find((each) => each.name === name);
    if (!node) throw new Error(`there is no server ${name}`);
    return node;
  }

  async #startEtcd(): Promise<void> {
    const [client, peer] = [await freePort(), await freePort()];
    this.#etcdPort = client;
    const at = (port: number) => `http://127.0.0.1:${port}`;
    const options = {
      "data-dir": join(this.directory, "etcd"),
      "listen-client-urls": at(client),
      "advertise-client-urls": at(client),
      "listen-peer-urls": at(peer),
      "initial-advertise-peer-urls": at(peer),
      "initial-cluster": `default=${at(peer)}`,
    };
    const given = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
    this.#etcd = this.#spawn([ETCD, ...given], join(this.directory, "etcd-log"));
    await until(
      "etcd answers",
      async () => (await fetch(`${at(client)}/health`).catch(() => null))?.ok ?? false,
      STARTED_MS,
    );
  }

  async #makeDatabase(): Promise<void> {
    await this.sql(`CREATE ROLE roomd LOGIN PASSWORD '${this.#password}'`, "postgres");
    await this.sql("CREATE DATABASE roomd OWNER roomd", "postgres");
  }

  #configuration({ name, directory, port, api }: Node): object {
    const at = (atPort: number) => `127.0.0.1:${atPort}`;
    const parameters = { max_connections: 60, shared_buffers: "16MB", fsync: "off", wal_log_hints: "on" };
    return {
      scope: "rooms",
      name,
      restapi: { listen: at(api), connect_address: at(api) },
      etcd3: { host: at(this.#etcdPort) },
      bootstrap: {
        dcs: {
          ttl: TTL_SECONDS,
          loop_wait: 2,
          retry_timeout: 3,
          synchronous_mode: true,
          synchronous_mode_strict: true,
          postgresql: { use_pg_rewind: true, parameters },
        },
        initdb: [{ encoding: "UTF8" }, { locale: "C" }],
      },
      postgresql: {
        listen: at(port),
        connect_address: at(port),
        data_dir: join(directory, "data"),
        bin_dir: programs(),
        pgpass: join(directory, "pgpass"),
        parameters: { unix_socket_directories: directory },
        pg_hba: [
          "local all all trust",
          "host all all 127.0.0.1/32 scram-sha-256",
          "host replication all 127.0.0.1/32 scram-sha-256",
        ],
        authentication: {
          superuser: { username: "postgres", password: this.#password },
          replication: { username: "replicator", password: this.#password },
        },
      },
    };
  }

  #spawn(command: string[], logFile: string): ChildProcess {
    const log = openSync(logFile, "a");
    // Should the test die, these do.
    const [program = "", ...args] = [...asUser(["--pdeathsig", "KILL"]), ...command];
    const child = spawn(program, args, { cwd: this.directory, stdio: ["ignore", log, log] });
    closeSync(log);
    return child;
  }
}

/** Processes that name the directory, and their descendants: Patroni, the server, and its children. */
function processesBelow(directory: string): number[] {
  const all = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
  const parents = new Map(all.map((pid) => [pid, parentOf(pid)]));
  const found = new Set(all.filter((pid) => commandOf(pid).includes(directory)));
  for (let count = -1; count !== found.size; ) {
    count = found.size;
    for (const [pid, parent] of parents) if (parent !== null && found.has(parent)) found.add(pid);
  }
  return [...found];
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}

/** Null for an exited process. */
function parentOf(pid: number): number | null {
  try {
    const [, state, parent] = /^\d+ \(.*\) (\S) (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, "utf8")) ?? [];
    return state === "Z" || state === "X" ? null : Number(parent);
  } catch {
    return null;
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended.
  }
}
