/** TLS as a real daemon serves it: its own certificate or one from files, never keys in the clear to other hosts. */
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { loadSelfSigned } from "../../daemon/edge/http/tls-self-signed.ts";
import { CERTIFICATE_REJECTED } from "../../daemon/edge/http/tls-watch.ts";
import { TestDaemon } from "../harness/daemon.ts";
import { until } from "./calls.ts";

interface Shown {
  pem: string;
  protocol: string | null;
}

/** Result for a client that connects while one listener replaces another: a connection reset. */
const NOTHING: Shown = { pem: "", protocol: null };

const toPem = (raw: Buffer) => raw.toString("base64");
const ofPem = (pem: string) => pem.replace(/-----[^-]+-----|\s/g, "");

function shownBy(daemon: TestDaemon): Promise<Shown> {
  const { hostname, port } = new URL(daemon.url);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false }, () => {
      const shown = { pem: toPem(socket.getPeerCertificate().raw), protocol: socket.getProtocol() };
      socket.destroy();
      resolve(shown);
    });
    socket.on("error", reject);
  });
}

const get = (daemon: TestDaemon, path: string, ca: string) =>
  fetch(daemon.url + path, { headers: { authorization: `Bearer ${daemon.apiKey}` }, tls: { ca } });

/** Why a service that was set up before does not start with this. */
async function refusalWith(env: Record<string, string>): Promise<unknown> {
  const daemon = await TestDaemon.start();
  try {
    await daemon.end("SIGTERM");
    Object.assign(daemon.env, env);
    return await daemon.serve().catch((error: unknown) => error);
  } finally {
    await daemon.stop();
  }
}

describe("a self-signed certificate", () => {
  let daemon: TestDaemon;
  const certificate = () => readFileSync(join(daemon.dataDir, "tls", "cert.pem"), "utf8");
  beforeAll(async () => {
    daemon = await TestDaemon.start({ env: { ROOMD_TLS_MODE: "self-signed" } });
  });
  afterAll(() => daemon.stop());

  test("is served, and trusted only by clients that have its file", async () => {
    expect(daemon.url).toMatch(/^https:/);
    const answer = await get(daemon, "/v1/me", certificate());
    expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "application/json"]);
    await expect(fetch(`${daemon.url}/health`)).rejects.toThrow();
    const shown = await shownBy(daemon);
    expect(shown.pem).toBe(ofPem(certificate()));
    expect(shown.protocol).toMatch(/^TLSv1\.[23]$/);
    expect(statSync(join(daemon.dataDir, "tls", "key.pem")).mode & 0o777).toBe(0o600);
  });

  test("is not served with unauthenticated cipher suites of TLS 1.2", async () => {
    const { host } = new URL(daemon.url);
    const speak = (...only: string[]) => {
      const argv = ["openssl", "s_client", "-connect", host, ...only];
      return Bun.spawnSync(argv, { stdin: Buffer.alloc(0), stderr: "ignore" }).stdout.toString();
    };
    for (const suite of ["ECDHE-ECDSA-AES128-SHA", "ECDHE-RSA-AES256-SHA", "AES128-SHA", "AES128-GCM-SHA256"]) {
      expect(speak("-tls1_2", "-cipher", suite), suite).toContain("Cipher is (NONE)");
    }
    expect(speak("-tls1_2")).toMatch(/TLSv1.2, Cipher is ECDHE-\w+-(AES\d+-GCM|CHACHA20)/);
    expect(speak()).toContain("New, TLSv1.3");
  });

  test("is accepted by the CLI as ROOMD_CA_CERT", async () => {
    const file = join(daemon.dataDir, "tls", "cert.pem");
    const trusted = await daemon.cli(["room", "list", "--json"], undefined, { ROOMD_CA_CERT: file });
    expect({ status: trusted.status, stderr: trusted.stderr }).toEqual({ status: 0, stderr: "" });
    expect((await daemon.cli(["room", "list"])).status).not.toBe(0);
  });

  test("stays the same across restarts", async () => {
    const before = certificate();
    await daemon.restart();
    expect(certificate()).toBe(before);
    expect((await shownBy(daemon)).pem).toBe(ofPem(before));
  });

  test("is not bypassed by plain HTTP", async () => {
    await expect(fetch(daemon.url.replace("https:", "http:"))).rejects.toThrow();
  });
});

describe("a certificate from files", () => {
  let daemon: TestDaemon;
  let files: { cert: string; key: string };
  const made: { cert: string; key: string }[] = [];
  const put = (index: number) => {
    for (const part of ["cert", "key"] as const) writeFileSync(files[part], made[index]?.[part] ?? "");
  };
  beforeAll(async () => {
    daemon = await TestDaemon.start({
      prepare: async (fresh) => {
        files = { cert: join(fresh.home, "tls.pem"), key: join(fresh.home, "tls.key") };
        for (const index of [0, 1]) {
          mkdirSync(join(fresh.home, `made-${index}`));
          made.push(await loadSelfSigned(join(fresh.home, `made-${index}`), []));
        }
        put(0);
        Object.assign(fresh.env, { ROOMD_TLS_CERT: files.cert, ROOMD_TLS_KEY: files.key });
      },
    });
  });
  afterAll(() => daemon.stop());

  test("is served, and replaced without a restart while a connection stays open", async () => {
    const [first, second] = made;
    if (!first || !second) throw new Error("no certificates");
    expect((await get(daemon, "/v1/me", first.cert)).status).toBe(200);
    const pid = daemon.pid;
    const kept = await keptAlive(daemon);
    expect(await kept.ask()).toMatch(/^HTTP\/1.1 200 /);

    put(1);
    await until(
      () => shownBy(daemon).catch(() => NOTHING),
      ({ pem }) => pem === ofPem(second.cert),
    );
    // Not some of the new connections: all.
    for (let n = 0; n < 10; n++) expect((await shownBy(daemon)).pem).toBe(ofPem(second.cert));
    expect((await get(daemon, "/v1/me", second.cert)).status).toBe(200);
    expect(daemon.pid).toBe(pid);
    expect(kept.certificate).toBe(ofPem(first.cert));
    expect(await kept.finish()).toMatch(/"room_id":"slow"/);
  });

  test("that is invalid leaves the previous one in use", async () => {
    writeFileSync(files.cert, "no certificate");
    await until(
      () => daemon.logged({ message: CERTIFICATE_REJECTED }),
      (entries) => entries.length > 0,
    );
    expect((await shownBy(daemon)).pem).toBe(ofPem(made[1]?.cert ?? ""));
    put(0);
    await until(
      () => shownBy(daemon).catch(() => NOTHING),
      ({ pem }) => pem === ofPem(made[0]?.cert ?? ""),
    );
  });

  /** A connection with a partial request that is completed later. */
  async function keptAlive(to: TestDaemon) {
    const { hostname, port } = new URL(to.url);
    const socket = await new Promise<TLSSocket>((resolve, reject) => {
      const made = connect({ host: hostname, port: Number(port), rejectUnauthorized: false }, () => resolve(made));
      made.on("error", reject);
    });
    let text = "";
    socket.setEncoding("utf8");
    socket.on("data", (chunk) => {
      text += chunk;
    });
    const head = (request: string) =>
      `${request} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${to.apiKey}\r\n`;
    const answer = async (holds: RegExp) => {
      await until(
        () => text,
        (seen) => holds.test(seen),
      );
      return text;
    };
    const body = '{"room_id":"slow"}';
    return {
      certificate: toPem(socket.getPeerCertificate().raw),
      ask: async () => {
        socket.write(`${head("GET /v1/me")}\r\n`);
        const first = await answer(/"org_id"/);
        text = "";
        socket.write(
          `${head("POST /v1/rooms")}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`,
        );
        socket.write(body.slice(0, 5));
        return first;
      },
      finish: async () => {
        socket.write(body.slice(5));
        const last = await answer(/"room_id"/);
        socket.destroy();
        return last;
      },
    };
  }
});

describe("plain HTTP", () => {
  const SENTENCE =
    /http\.listen = "0\.0\.0\.0:0" can be reached from other hosts and has no TLS: set tls\.cert and tls\.key, or tls\.mode = "self-signed", or http\.insecure = true/;

  test("is refused on a non-local address, with a remedy", async () => {
    const refused = await refusalWith({ ROOMD_HTTP_LISTEN: "0.0.0.0:0" });
    expect(String(refused)).toMatch(SENTENCE);
    expect(String(refused)).not.toMatch(/\bat \w+ \(/);
  });

  test("is possible if configured explicitly", async () => {
    const env = { ROOMD_HTTP_LISTEN: "0.0.0.0:0", ROOMD_HTTP_INSECURE: "true" };
    const daemon = await TestDaemon.start({ env });
    try {
      expect((await daemon.api("GET", "/v1/me")).status).toBe(200);
    } finally {
      await daemon.stop();
    }
  });
});

test.each<[string, Record<string, string>, RegExp]>([
  ["one of two files", { ROOMD_TLS_CERT: "/nowhere.pem" }, /tls\.key/],
  [
    "missing files",
    { ROOMD_TLS_CERT: "/nowhere.pem", ROOMD_TLS_KEY: "/nowhere.key" },
    /tls\.cert = \/nowhere\.pem: no such file/,
  ],
  ["an invalid address", { ROOMD_HTTP_LISTEN: "nonsense" }, /http\.listen = "nonsense": must be host:port/],
])("%s fails the start with one sentence", async (_, env, sentence) => {
  expect(String(await refusalWith(env))).toMatch(sentence);
});

test("a port in use fails the start with one sentence, with TLS and without", async () => {
  const server = createServer();
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const address = server.address();
  const listen = `127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
  try {
    for (const mode of ["off", "self-signed"]) {
      const env = { ROOMD_HTTP_LISTEN: listen, ROOMD_TLS_MODE: mode };
      const refused = await TestDaemon.start({ env }).catch((error: Error) => error);
      if (!(refused instanceof Error)) await refused.stop();
      expect(String(refused)).toContain(listen);
    }
  } finally {
    server.close();
  }
});
