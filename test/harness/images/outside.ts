/**
 * The outside world for sandboxes of a test: a network namespace behind a veth pair, with servers of outside-server.ts. Its addresses are
 * unassigned public ones, so that the shipped rules hold unchanged: 192.52.193.0/24 was reserved for multicast relays that no longer exist
 * (RFC 8815), 2d00::/8 is unallocated. Names are in a file, which tests may change.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomBytes, randomInt } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { until } from "../guests.ts";
import { type Issued, issue } from "../issued-certificate.ts";

export const OUTSIDE_PORTS = {
  http: 80,
  https: 443,
  echo: 7000,
  ending: 7001,
  never: 7002,
  dns: 53,
  quic: 4433,
} as const;

export interface OutsideFacts {
  root: string;
  cert: string;
  key: string;
  privateV4: string;
}

/** Traffic that the servers saw. */
export type Seen =
  | { kind: "http"; tls: boolean; host: string; line: string }
  | { kind: "sent"; bytes: number; sha256: string }
  | { kind: "tcp" | "udp"; port: number }
  | { kind: "late"; bytes: number }
  | { kind: "private" };

const SERVER = fileURLToPath(new URL("./outside-server.ts", import.meta.url));

export class Outside implements AsyncDisposable {
  readonly directory: string;
  /** Served by HTTP and HTTPS. */
  readonly root: string;
  readonly hostsFile: string;
  /** Of an authority of the test's own, for all names. */
  readonly issued: Issued;
  /** The host's own addresses on the way there, and the servers'. */
  readonly hostV4: string;
  readonly v4: string;
  readonly privateV4: string;
  readonly v6: string;
  readonly seen: Seen[] = [];
  readonly #process: ChildProcess;
  readonly #more: ChildProcess[] = [];

  private constructor(directory: string, issued: Issued, addresses: Addresses, process: ChildProcess) {
    this.directory = directory;
    this.root = join(directory, "root");
    this.hostsFile = join(directory, "hosts");
    this.issued = issued;
    this.hostV4 = addresses.hostV4;
    this.v4 = addresses.v4;
    this.privateV4 = addresses.privateV4;
    this.v6 = addresses.v6;
    this.#process = process;
  }

  /** Servers with a certificate for these names. Needs root. */
  static async start(names: readonly string[]): Promise<Outside> {
    const directory = mkdtempSync(join(tmpdir(), "roomd-outside-"));
    const addresses = freeAddresses();
    const issued = await issue(names);
    const { cert, key } = issued;
    const child = spawn("unshare", ["--net", process.execPath, SERVER], { stdio: ["pipe", "pipe", "inherit"] });
    const outside = new Outside(directory, issued, addresses, child);
    try {
      mkdirSync(outside.root);
      outside.setHosts({});
      const states: string[] = [];
      createInterface({ input: child.stdout }).on("line", (line) => {
        const { kind } = JSON.parse(line) as { kind: string };
        if (kind === "up" || kind === "ready") states.push(kind);
        else outside.seen.push(JSON.parse(line) as Seen);
      });
      const has = (kind: string) => () => {
        if (child.exitCode !== null) throw new Error(`the servers outside ended with ${child.exitCode}`);
        return states.includes(kind);
      };
      await until("the network namespace exists", has("up"));
      connect(child.pid ?? 0, addresses);
      const facts: OutsideFacts = { root: outside.root, cert, key, privateV4: addresses.privateV4 };
      child.stdin.write(`${JSON.stringify(facts)}\n`);
      await until("the outside servers listen", has("ready"));
      return outside;
    } catch (error) {
      await outside[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** The addresses of names, for a daemon with this file. */
  setHosts(hosts: Record<string, string | readonly string[]>): void {
    const lines = Object.entries(hosts).flatMap(([name, addresses]) =>
      [addresses].flat().map((each) => `${each} ${name}`),
    );
    writeFileSync(this.hostsFile, `${lines.join("\n")}\n`);
  }

  /** Starts another server in the namespace, which ends with the others. */
  run(program: string, ...args: string[]): void {
    const there = `--net=/proc/${this.#process.pid}/ns/net`;
    this.#more.push(spawn("nsenter", [there, program, ...args], { stdio: ["ignore", "ignore", "inherit"] }));
  }

  /** With the namespace's last process it goes, and the interfaces with it. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#more) child.kill("SIGKILL");
    const exited = once(this.#process, "exit");
    if (this.#process.exitCode === null && this.#process.signalCode === null && this.#process.kill("SIGKILL"))
      await exited;
    rmSync(this.directory, { recursive: true, force: true });
  }
}

interface Addresses {
  hostV4: string;
  v4: string;
  privateV4: string;
  hostV6: string;
  v6: string;
}

/** By chance, so that tests side by side have others. */
function freeAddresses(): Addresses {
  const used = Object.values(networkInterfaces()).flatMap((each) => (each ?? []).map(({ address }) => address));
  for (;;) {
    const block = 8 * randomInt(32);
    const hostV4 = `192.52.193.${block + 1}`;
    // As addresses are written: no zeros before a group.
    const group = () => randomInt(1, 0x1_0000).toString(16);
    const net = `2dff:${group()}:${group()}:1`;
    const privateV4 = `10.213.${randomInt(256)}.${randomInt(256)}`;
    if (used.includes(hostV4)) continue;
    return { hostV4, v4: `192.52.193.${block + 2}`, privateV4, hostV6: `${net}::1`, v6: `${net}::2` };
  }
}

/** Joins the process's namespace to the host's by a pair of interfaces. */
function connect(pid: number, { hostV4, v4, privateV4, hostV6, v6 }: Addresses): void {
  const name = `rt${randomBytes(4).toString("hex")}`;
  ip(
    ["-batch", "-"],
    [
      `link add ${name} type veth peer name outside netns ${pid}`,
      `address add ${hostV4}/29 dev ${name}`,
      `address add ${hostV6}/64 dev ${name} nodad`,
      `link set ${name} up`,
      `route add ${privateV4}/32 dev ${name}`,
    ],
  );
  ip(
    ["-batch", "-"],
    [
      "link set lo up",
      `address add ${v4}/29 dev outside`,
      `address add ${privateV4}/32 dev outside`,
      `address add ${v6}/64 dev outside nodad`,
      "link set outside up",
    ],
    pid,
  );
}

function ip(args: string[], lines: string[], pid?: number): void {
  const [command = "", ...rest] = [
    ...(pid === undefined ? [] : ["nsenter", `--net=/proc/${pid}/ns/net`]),
    "ip",
    ...args,
  ];
  const { status, stderr, error } = spawnSync(command, rest, { input: `${lines.join("\n")}\n`, encoding: "utf8" });
  if (status !== 0) throw new Error(`ip: ${stderr || error}`);
}
