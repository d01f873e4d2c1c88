/**
 * One PostgreSQL server of a test, with all its faults: killed, frozen, partitioned, replaced by another. It runs as an unprivileged user
 * in a separate directory, on a free port of the loopback (or in a network namespace, which can be partitioned) and on a socket. Only
 * processes that it started are ended.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomBytes, randomInt } from "node:crypto";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  closeSync,
  cpSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../free-port.ts";
import { until } from "../guests.ts";
import { type Issued, issue } from "../issued-certificate.ts";

const DEBIAN = "/usr/lib/postgresql";
const STARTED_MS = 30_000;
const USER = "roomd";
// Killed processes lose nothing that the kernel has; only measurements wait for the disk.
const SETTINGS = { fsync: "off", max_connections: "60", shared_buffers: "16MB", log_line_prefix: "%m [%p] " };

/** By which way a client gets there. */
export type Way = "socket" | "tcp" | "tls";

export interface PostgresOptions {
  /** In a separate network namespace, so that it can be partitioned. Needs root. */
  network?: boolean;
  settings?: Record<string, string>;
}

/** Directory of this host's newest server; null if there is no server. */
export function programs(): string | null {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a)) : [];
  const found = versions
    .map((version) => join(DEBIAN, version, "bin"))
    .find((bin) => existsSync(join(bin, "postgres")));
  return found ?? null;
}

/** Why no server can run here; null if one can. */
export function whyNoPostgres(): string | null {
  return programs() === null ? `there is no server in ${DEBIAN}: packaging/install-host --tests` : null;
}

export class Postgres implements AsyncDisposable {
  readonly directory: string;
  readonly port: number;
  readonly issued: Issued;
  readonly #bin: string;
  readonly #password = randomBytes(12).toString("hex");
  readonly #settings: Record<string, string>;
  readonly #network: Network | null;
  /** Which directory of data is served, and which ever were. */
  #data = "data";
  readonly #served = new Set([this.#data]);
  #server: ChildProcess | null = null;

  private constructor(bin: string, port: number, issued: Issued, network: Network | null, settings: object) {
    this.directory = mkdtempSync(join(tmpdir(), "roomd-pg-"));
    this.port = port;
    this.issued = issued;
    this.#bin = bin;
    this.#network = network;
    this.#settings = { ...SETTINGS, ...settings };
  }

  static async start({ network = false, settings = {} }: PostgresOptions = {}): Promise<Postgres> {
    const bin = programs();
    if (bin === null) throw new Error(String(whyNoPostgres()));
    const [port, issued] = [await freePort(), await issue(["localhost"])];
    const postgres = new Postgres(bin, port, issued, network ? await Network.make() : null, settings);
    try {
      own(postgres.directory);
      postgres.#write("password", `${postgres.#password}\n`);
      postgres.#write("cert.pem", issued.cert);
      postgres.#write("key.pem", issued.key);
      postgres.#write("authority.pem", issued.authority);
      chmodSync(join(postgres.directory, "authority.pem"), 0o644);
      await postgres.#initialize("data");
      await postgres.begin();
      return postgres;
    } catch (error) {
      await postgres[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** The value of `cluster.url` with the second address of its network, which can be partitioned separately. */
  get secondUrl(): string {
    const url = new URL(this.url("tcp"));
    url.hostname = this.#network?.second ?? url.hostname;
    return url.href;
  }

  /** The value of `cluster.url` for this server and transport. */
  url(way: Way = "tcp"): string {
    const { port, directory } = this;
    const credentials = `postgres://${USER}:${this.#password}`;
    const at = this.#network?.address ?? "127.0.0.1";
    const urls = {
      socket: `${credentials}@localhost:${port}/postgres?host=${directory}`,
      tcp: `${credentials}@${at}:${port}/postgres?sslmode=disable`,
      tls: `${credentials}@localhost:${port}/postgres?sslmode=verify-full&sslrootcert=${directory}/authority.pem`,
    };
    return urls[way];
  }

  /** The output of statements, over the socket: one row per line, columns separated by `|`. */
  async sql(statements: string): Promise<string> {
    const connection = ["-h", this.directory, "-p", String(this.port), "-U", USER, "-d", "postgres"];
    return (
      await run([join(this.#bin, "psql"), ...connection, "-qAtX", "-v", "ON_ERROR_STOP=1"], [`${statements};`])
    ).trim();
  }

  /** The statement's output for each data directory that was ever served, the present one last. */
  async everySql(statement: string): Promise<string[]> {
    const [now, outputs] = [this.#data, [] as string[]];
    for (const data of [...[...this.#served].filter((each) => each !== now), now]) {
      if (data !== this.#data) await this.replace(data);
      outputs.push(await this.sql(statement));
    }
    return outputs;
  }

  get runs(): boolean {
    return this.#server !== null && this.#server.exitCode === null && this.#server.signalCode === null;
  }

  /** Starts it and waits until it takes connections. */
  async begin(): Promise<void> {
    const log = openSync(join(this.directory, "log"), "a");
    const settings = {
      port: String(this.port),
      listen_addresses: this.#network ? "*" : "127.0.0.1",
      unix_socket_directories: this.directory,
      ssl: "on",
      ssl_cert_file: join(this.directory, "cert.pem"),
      ssl_key_file: join(this.directory, "key.pem"),
      ...this.#settings,
    };
    const args = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    const data = join(this.directory, this.#data);
    // Should the test die, the server shuts down.
    const unprivileged = [...asUser(["--pdeathsig", "QUIT"]), join(this.#bin, "postgres"), "-D", data, ...args];
    const [command = "", ...rest] = [...(this.#network?.within() ?? []), ...unprivileged];
    const server = spawn(command, rest, { cwd: this.directory, stdio: ["ignore", log, log] });
    closeSync(log);
    this.#server = server;
    await until("the server is ready", () => this.#isReady(server, data), STARTED_MS);
  }

  /** Stops it as an operator does: sessions are notified, and no recovery is needed. */
  async stop(): Promise<void> {
    await this.#ends((server) => server.kill("SIGINT"));
  }

  /** Ends all of its processes simultaneously, as the loss of its host does. */
  async kill(): Promise<void> {
    const all = this.freeze();
    await this.#ends(() => {
      for (const pid of all) process.kill(pid, "SIGKILL");
    });
    // Its children are not ours to wait for; the next server does not start before they are gone.
    await until("the server's processes have exited", () => all.every(hasEnded));
  }

  /** Stops all of its processes, and returns their pids. */
  freeze(): number[] {
    const pid = this.#pid();
    // First the process that forks the others.
    process.kill(pid, "SIGSTOP");
    const all = [pid, ...childrenOf(pid)];
    for (const each of all) process.kill(each, "SIGSTOP");
    return all;
  }

  thaw(): void {
    const pid = this.#pid();
    for (const each of [...childrenOf(pid), pid]) process.kill(each, "SIGCONT");
  }

  /** Drops all packets of its network, or of its second address only, without a notification to either side. */
  async cut(scope: "all" | "second" = "all"): Promise<void> {
    await this.#network?.cut(scope);
  }

  async join(): Promise<void> {
    await this.#network?.join();
  }

  /** Ends all sessions except the calling one; returns their number. */
  async terminateSessions(): Promise<number> {
    const sessions = "backend_type = 'client backend' AND pid <> pg_backend_pid()";
    return Number(await this.sql(`SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE ${sessions}`));
  }

  /** Its host is lost: another server, with other data, takes its place. */
  async replace(name: string): Promise<void> {
    await this.kill();
    if (!existsSync(join(this.directory, name))) await this.#initialize(name);
    await this.#serve(name);
  }

  /** Its host is lost: a standby takes its place, with the same data. `promote` makes it the primary. */
  async replaceByStandby(name: string): Promise<void> {
    await this.stop();
    const copied = join(this.directory, name);
    cpSync(join(this.directory, this.#data), copied, { recursive: true });
    writeFileSync(join(copied, "standby.signal"), "");
    own(copied, { deep: true });
    await this.#serve(name);
  }

  /** Stores a copy of the current data, for `replace`. */
  async copy(name: string): Promise<void> {
    await this.stop();
    const copied = join(this.directory, name);
    cpSync(join(this.directory, this.#data), copied, { recursive: true });
    own(copied, { deep: true });
    await this.begin();
  }

  async promote(): Promise<void> {
    await this.sql("SELECT pg_promote()");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.runs) await this.kill();
    await this.#network?.[Symbol.asyncDispose]();
    rmSync(this.directory, { recursive: true, force: true });
  }

  async #serve(name: string): Promise<void> {
    this.#data = name;
    this.#served.add(name);
    await this.begin();
  }

  async #initialize(name: string): Promise<void> {
    const data = join(this.directory, name);
    const password = join(this.directory, "password");
    const auth = ["--auth-local=trust", "--auth-host=scram-sha-256", `--pwfile=${password}`];
    const args = ["-D", data, "-U", USER, "--no-sync", "-E", "UTF8", "--no-locale", ...auth];
    const [command = "", ...rest] = [...asUser(), join(this.#bin, "initdb"), ...args];
    const initdb = spawn(command, rest, { cwd: this.directory, stdio: ["ignore", "ignore", "pipe"] });
    let output = "";
    initdb.stderr.on("data", (chunk: Buffer) => {
      output += chunk;
    });
    const [code] = await once(initdb, "close");
    if (code !== 0) throw new Error(`initdb: ${output}`);
    const access = ["local all all trust", "host all all all scram-sha-256"];
    this.#write(join(name, "pg_hba.conf"), `${access.join("\n")}\n`);
  }

  /** According to its own file, which an earlier server may have left. */
  #isReady(server: ChildProcess, data: string): boolean {
    if (server.exitCode !== null || server.signalCode !== null) {
      throw new Error(`the server ended: ${readFileSync(join(this.directory, "log"), "utf8").slice(-2000)}`);
    }
    try {
      const lines = readFileSync(join(data, "postmaster.pid"), "utf8").split("\n");
      return Number(lines[0]) === server.pid && ["ready", "standby"].includes(lines[7]?.trim() ?? "");
    } catch {
      return false;
    }
  }

  async #ends(end: (server: ChildProcess) => void): Promise<void> {
    const server = this.#server;
    if (server === null || server.exitCode !== null || server.signalCode !== null) return;
    const exited = once(server, "exit");
    end(server);
    await exited;
  }

  #pid(): number {
    const { pid, exitCode, signalCode } = this.#server ?? {};
    if (pid === undefined || exitCode != null || signalCode != null) throw new Error("the server does not run");
    return pid;
  }

  #write(name: string, text: string): void {
    const file = join(this.directory, name);
    writeFileSync(file, text, { mode: 0o600 });
    own(file);
  }
}

/** A network namespace that the host reaches by a pair of interfaces. */
class Network implements AsyncDisposable {
  readonly address: string;
  /** Another way to the same. */
  readonly second: string;
  readonly #process: ChildProcess;

  private constructor(address: string, second: string, process: ChildProcess) {
    this.address = address;
    this.second = second;
    this.#process = process;
  }

  static async make(): Promise<Network> {
    // Not used elsewhere: other tests have 10.213.
    const [a, b] = [randomInt(256), 4 * randomInt(64)];
    const child = spawn("unshare", ["--net", "sleep", "infinity"], { stdio: "ignore" });
    const network = new Network(`10.214.${a}.${b + 2}`, `10.215.${a}.${b + 2}`, child);
    const ours = readlinkSync("/proc/self/ns/net");
    await until("the network namespace exists", () => readlinkSync(`/proc/${child.pid}/ns/net`) !== ours);
    const name = `rp${randomBytes(4).toString("hex")}`;
    await run(
      ["ip", "-batch", "-"],
      [
        `link add ${name} type veth peer name host netns ${child.pid}`,
        `address add 10.214.${a}.${b + 1}/30 dev ${name}`,
        `link set ${name} up`,
        `route add ${network.second}/32 dev ${name}`,
      ],
    );
    await run(
      [...network.within(), "ip", "-batch", "-"],
      [
        "link set lo up",
        ...[`address add ${network.address}/30 dev host`, `address add ${network.second}/32 dev host`],
        "link set host up",
      ],
    );
    return network;
  }

  /** The prefix of a command that is to run in the namespace. */
  within(): string[] {
    return ["nsenter", `--net=/proc/${this.#process.pid}/ns/net`];
  }

  /** Packets vanish in both directions, as if a switch between two hosts failed: neither side is notified. */
  async cut(scope: "all" | "second"): Promise<void> {
    const policy = scope === "all" ? "drop" : "accept";
    const chains = ["input", "output"].map(
      (hook) => `add chain inet cut ${hook} { type filter hook ${hook} priority 0; policy ${policy}; }`,
    );
    const rules = [`input ip daddr ${this.second} drop`, `output ip saddr ${this.second} drop`];
    const added = scope === "all" ? [] : rules.map((rule) => `add rule inet cut ${rule}`);
    await run([...this.within(), "nft", "-f", "-"], ["add table inet cut", ...chains, ...added]);
  }

  async join(): Promise<void> {
    await run([...this.within(), "nft", "-f", "-"], ["delete table inet cut"]);
  }

  /** The interfaces go with the namespace, and that with its last process. */
  async [Symbol.asyncDispose](): Promise<void> {
    const exited = once(this.#process, "exit");
    if (this.#process.exitCode === null && this.#process.kill("SIGKILL")) await exited;
  }
}

const isRoot = process.getuid?.() === 0;

/** PostgreSQL refuses to run as root, and wants a user with a name. */
export function asUser(options: string[] = []): string[] {
  return isRoot ? ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", ...options] : [];
}

let nobody: { uid: number; gid: number } | null = null;

/** Gives it to the user that the server runs as. */
export function own(path: string, { deep = false } = {}): void {
  if (!isRoot) return;
  const id = (option: string) => Number(spawnSync("id", [option, "nobody"], { encoding: "utf8" }).stdout);
  nobody ??= { uid: id("-u"), gid: id("-g") };
  chownSync(path, nobody.uid, nobody.gid);
  if (!deep) return;
  for (const each of readdirSync(path, { withFileTypes: true })) {
    own(join(path, each.name), { deep: each.isDirectory() });
  }
}

/** Gone, or dead and not yet waited for. */
function hasEnded(pid: number): boolean {
  try {
    return /^\d+ \(.*\) [ZX]/s.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return true;
  }
}

function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
  return text.split(" ").filter(Boolean).map(Number);
}

/** The output of the command for these lines; throws its standard error on failure. */
async function run([command = "", ...args]: string[], lines: string[]): Promise<string> {
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "pipe"] });
  const output: Buffer[] = [];
  let complained = "";
  child.stdout.on("data", (chunk: Buffer) => output.push(chunk));
  child.stderr.on("data", (chunk: Buffer) => {
    complained += chunk;
  });
  child.stdin.on("error", () => {});
  child.stdin.end(`${lines.join("\n")}\n`);
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`${command}: ${complained}`);
  return Buffer.concat(output).toString();
}
