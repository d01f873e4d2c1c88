/**
 * Benchmark of entry hosts: a room read, and a stored message, on a standalone host, on the room's own host of two and on the other host,
 * against nginx in front of the standalone host. They take turns, in several rounds.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TestDaemon } from "../harness/daemon.ts";
import { freePort } from "../harness/free-port.ts";
import { until } from "../harness/guests.ts";
import { TestHosts } from "../harness/hosts/hosts.ts";
import { loadHttp } from "./load/http-load.ts";
import type { Bench } from "./report.ts";

const NGINX = "/usr/sbin/nginx";
const CONNECTIONS = 64;
const SENDERS = 8;
/** Many short ones: concurrent load of the machine then affects all of them alike. */
const ROUNDS = 30;
const USUAL_COUNT = 2500;
/** By one connection, and of messages, each takes longer. */
const FEWER = 10;
const JSON_BODY = { "content-type": "application/json" };

interface Entry {
  url: string;
  key: string;
  alone: number[];
  many: number[];
  perSecond: number[];
  sent: number[];
}

export async function benchEntry({ report, count = USUAL_COUNT, start, watch }: Bench): Promise<void> {
  const host = await start({ guests: false });
  await using service = await TestHosts.start(2, { guests: false });
  await service.knowEachOther();
  await using watches = new AsyncDisposableStack();
  for (const each of service.hosts) watches.use(await watch(each));
  const [first, second] = service.hosts as [TestDaemon, TestDaemon];
  await host.ok("POST", "/v1/rooms", { room_id: "bench" });
  await first.ok("POST", "/v1/rooms", { room_id: "bench", host: "host-1" });
  await using proxy = existsSync(NGINX) ? await ReverseProxy.start(host.url) : null;
  if (!proxy) console.error(`no ${NGINX}: apt install nginx-light has the yardstick`);
  const at = (url: string, { apiKey: key }: TestDaemon): Entry => {
    return { url, key, alone: [], many: [], perSecond: [], sent: [] };
  };
  const entries = new Map([
    ["alone", at(host.url, host)],
    ["owner", at(first.url, first)],
    ["other", at(second.url, first)],
    ...(proxy ? [["nginx", at(proxy.url, host)] as const] : []),
  ]);
  // The first round is not counted: code is compiled then.
  for (let round = -1; round < ROUNDS; round++) {
    // In alternating order: a daemon that was called recently is faster.
    const all = [...entries];
    for (const [name, entry] of round % 2 === 0 ? all : all.reverse()) {
      // An inbox has a bound.
      const agent = `${name}-${round + 1}`;
      await (name === "owner" || name === "other" ? first : host).ok(
        "PUT",
        `/v1/rooms/bench/agents/${agent}/subscriptions`,
        { topics: ["t"] },
      );
      await askBy(entry, agent, count, round >= 0);
    }
  }
  for (const [name, { alone, many, perSecond, sent }] of entries) {
    const held = (metric: string) => {
      if (name === "alone") return undefined;
      return name === "other" && proxy ? `nginx_${metric}` : `alone_${metric}`;
    };
    report.add(`${name}_get_one_connection`, "ms", alone, held("get_one_connection"));
    report.add(`${name}_get_64_connections`, "ms", many, held("get_64_connections"));
    report.add(`${name}_get_per_second`, "1/s", perSecond, held("get_per_second"));
    report.add(`${name}_send_8_senders`, "ms", sent, held("send_8_senders"));
  }
}

async function askBy(entry: Entry, agent: string, count: number, isCounted: boolean): Promise<void> {
  const headers = { authorization: `Bearer ${entry.key}` };
  const room = `${entry.url}/v1/rooms/bench`;
  const single = await loadHttp(room, headers, 1, count / FEWER);
  const many = await loadHttp(room, headers, CONNECTIONS, count);
  const sent = await send(`${room}/messages`, headers, agent, count / FEWER);
  if (!isCounted) return;
  entry.alone.push(...single.samplesMs);
  entry.many.push(...many.samplesMs);
  entry.perSecond.push((many.samplesMs.length / many.wallMs) * 1000);
  entry.sent.push(...sent);
}

async function send(url: string, headers: Record<string, string>, destination: string, count: number) {
  const samplesMs: number[] = [];
  const body = JSON.stringify({ source: "a", destination, payload: { n: 1 } });
  const each = async () => {
    for (let n = 0; n < count / SENDERS; n++) {
      const askedAt = performance.now();
      const answer = await fetch(url, { method: "POST", headers: { ...headers, ...JSON_BODY }, body });
      if (!answer.ok) throw new Error(await answer.text());
      await answer.arrayBuffer();
      samplesMs.push(performance.now() - askedAt);
    }
  };
  await Promise.all(Array.from({ length: SENDERS }, each));
  return samplesMs;
}

/** One worker that keeps its connections, and logs nothing. */
class ReverseProxy implements AsyncDisposable {
  readonly url: string;
  readonly #home: string;
  readonly #server: ChildProcess;

  private constructor(url: string, home: string, server: ChildProcess) {
    this.url = url;
    this.#home = home;
    this.#server = server;
  }

  static async start(to: string): Promise<ReverseProxy> {
    const home = mkdtempSync("/tmp/roomd-bench-");
    const port = await freePort();
    writeFileSync(join(home, "nginx.conf"), configuration(home, port, new URL(to).host));
    const server = spawn(NGINX, ["-p", home, "-c", "nginx.conf", "-e", "stderr"], { stdio: "inherit" });
    const proxy = new ReverseProxy(`http://127.0.0.1:${port}`, home, server);
    await until("the proxy answers", () => fetch(proxy.url).catch(() => null));
    return proxy;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const exited = once(this.#server, "exit");
    if (this.#server.exitCode === null && this.#server.kill()) await exited;
    rmSync(this.#home, { recursive: true });
  }
}

function configuration(home: string, port: number, to: string): string {
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${home};`);
  return `
    daemon off; master_process off; pid ${home}/pid;
    events { worker_connections 1024; }
    http {
      access_log off; ${temporary.join(" ")}
      upstream daemon { server ${to}; keepalive ${CONNECTIONS}; keepalive_requests 1000000; }
      server {
        listen 127.0.0.1:${port}; keepalive_requests 1000000;
        location / { proxy_pass http://daemon; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host ${to}; }
      }
    }`;
}
