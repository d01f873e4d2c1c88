/** The clients that a host's listener admits, and the servers that a host accepts as another host. */
import { spawn } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer as createSocketServer } from "node:net";
import { createInterface } from "node:readline";
import { type ConnectionOptions, connect } from "node:tls";
import { expect, test } from "vitest";
import { loadHostCertificate } from "../../../../daemon/cluster/certificate.ts";
import type { Certificate } from "../../../../daemon/core/config/certificate.ts";
import { ServiceError } from "../../../../daemon/core/service-error.ts";
import { forwardRequest } from "../../../../daemon/edge/hosts/forward.ts";
import { loadSelfSigned } from "../../../../daemon/edge/http/tls-self-signed.ts";
import { issue } from "../../../harness/issued-certificate.ts";
import { scratch, until } from "../tls-fixture.ts";
import { ABOUT, clientOf, listen, members, rawOwner } from "./fixture.ts";

const ask = (client: ReturnType<typeof clientOf>, host: Parameters<typeof forwardRequest>[1]) =>
  forwardRequest(client, host, new Request("http://entry/x"), ABOUT, new AbortController().signal);
const codeOf = async (call: Promise<unknown>) => {
  const error = await call.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  return error instanceof ServiceError ? [error.code, error.options.details] : error;
};
const UNREACHABLE = ["host_unreachable", { host: "owner" }];

/** Response to a client of another implementation; null if it is not admitted. */
function answeredTo(
  port: number,
  shown: Partial<Certificate>,
  options: ConnectionOptions = {},
): Promise<string | null> {
  return new Promise((resolve) => {
    let received = "";
    const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false, ...shown, ...options }, () =>
      socket.write("GET / HTTP/1.1\r\nhost: a.example\r\nconnection: close\r\n\r\n"),
    );
    socket.on("data", (bytes) => {
      received += bytes;
    });
    socket.on("error", () => {});
    socket.on("close", () => resolve(received === "" ? null : received.slice(0, 15)));
  });
}

test("a host's certificate is created once, for ten years, and for both client and server", async () => {
  using directory = scratch();
  const at = `${directory.path}/cluster`;
  const [one, two] = await Promise.all([loadHostCertificate(at), loadHostCertificate(at)]);
  expect(two).toEqual(one);
  expect(await loadHostCertificate(at)).toEqual(one);
  expect(one).toEqual({ cert: readFileSync(`${at}/cert.pem`, "utf8"), key: readFileSync(`${at}/key.pem`, "utf8") });
  const certificate = new X509Certificate(one.cert);
  const years = (certificate.validToDate.getTime() - Date.now()) / (365.25 * 86_400_000);
  expect(Math.round(years)).toBe(10);
  expect(certificate.keyUsage?.sort()).toEqual(["1.3.6.1.5.5.7.3.1", "1.3.6.1.5.5.7.3.2"]);
  expect(certificate.ca).toBe(false);
});

test("a crash between key and certificate leaves a key, for which the certificate is created", async () => {
  using directory = scratch();
  const { key } = await loadHostCertificate(directory.path);
  const other = `${directory.path}/other`;
  mkdirSync(other);
  writeFileSync(`${other}/key.pem`, key);
  expect((await loadHostCertificate(other)).key).toBe(key);
  writeFileSync(`${other}/cert.pem`, (await loadHostCertificate(`${directory.path}/third`)).cert);
  await expect(loadHostCertificate(other)).rejects.toThrow(`${other}/key.pem`);
});

test("members are admitted, and no other client", async () => {
  using made = await members("owner", "entry", "second", "stranger");
  const [owner, member, second, stranger] = made;
  using directory = scratch();
  const { listener, reached, stop } = listen(owner, [member, second], () => new Response("hello"));
  const port = Number(listener.url.port);
  for (const { own } of [member, second]) expect(await answeredTo(port, own)).toBe("HTTP/1.1 200 OK");
  expect(await answeredTo(port, {})).toBe(null);
  expect(await answeredTo(port, stranger.own)).toBe(null);
  // A certificate that is valid for servers, like the public one of a host.
  expect(await answeredTo(port, await loadSelfSigned(directory.path, []))).toBe(null);
  // A certificate has to be proven by its key.
  expect(await answeredTo(port, { cert: member.own.cert, key: member.own.key }, { maxVersion: "TLSv1.2" })).toBe(null);
  using client = clientOf(member);
  expect(await (await ask(client, reached)).text()).toBe("hello");
  using foreign = clientOf(stranger);
  expect(await codeOf(ask(foreign, reached))).toEqual(UNREACHABLE);
  await stop();
});

test("a certificate signed by a member is not admitted", async () => {
  using made = await members("owner", "entry");
  const [owner, member] = made;
  const { listener, stop } = listen(owner, [member], () => new Response("hello"));
  const { cert, key } = await issue(["a.example"], { isClient: true, signer: member.own });
  const port = Number(listener.url.port);
  expect(await answeredTo(port, { cert, key })).toBe(null);
  expect(await answeredTo(port, { cert: `${cert}${member.own.cert}`, key })).toBe(null);
  await stop();
});

/**
 * A listener, and a server that admits every client with a certificate of a trusted authority, in a process that trusts another authority.
 */
const SERVER = `
import { readFileSync } from "node:fs";
import { openMembersListener } from ${JSON.stringify(`${import.meta.dirname}/../../../../daemon/edge/hosts/listener.ts`)};
const [, , cert, key, ...members] = process.argv.map((each) => (each.endsWith(".pem") ? readFileSync(each, "utf8") : each));
const fetch = () => new Response("hello");
const any = { hostname: "127.0.0.1", port: 0 };
const listener = openMembersListener(any, { own: { cert, key }, members }, (listen) => Bun.serve({ ...listen, fetch }));
const usual = Bun.serve({ ...any, tls: { cert, key, requestCert: true, rejectUnauthorized: true }, fetch });
console.log(listener.url.port, usual.port);
`;

test("an authority trusted by the system is not trusted between hosts", async () => {
  using made = await members("owner", "entry");
  const [owner, member] = made;
  using directory = scratch();
  const issued = await issue(["a.example"], { isClient: true });
  const file = (name: string, text: string) => {
    writeFileSync(`${directory.path}/${name}`, text);
    return `${directory.path}/${name}`;
  };
  const args = [file("c.pem", owner.own.cert), file("k.pem", owner.own.key)];
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: file("authority.pem", issued.authority) };
  const server = file("server.ts", SERVER);
  for (const admitted of [[file("m.pem", member.own.cert)], []]) {
    const child = spawn(process.execPath, [server, ...args, ...admitted], {
      env,
      stdio: ["ignore", "pipe", "inherit"],
    });
    const line = await new Promise<string>((resolve) => createInterface({ input: child.stdout }).once("line", resolve));
    const [port = 0, usual = 0] = line.split(" ").map(Number);
    // Bun trusts this authority by default.
    expect(await answeredTo(usual, issued)).toBe("HTTP/1.1 200 OK");
    expect(await answeredTo(port, issued)).toBe(null);
    expect(await answeredTo(port, member.own)).toBe(admitted.length === 1 ? "HTTP/1.1 200 OK" : null);
    child.kill();
  }
});

test("without members no client is admitted", async () => {
  using made = await members("owner", "entry");
  const [owner, member] = made;
  const { listener, stop } = listen(owner, [], () => new Response("hello"));
  const port = Number(listener.url.port);
  expect(await answeredTo(port, member.own)).toBe(null);
  expect(await answeredTo(port, {})).toBe(null);
  listener.admit([member.own.cert]);
  expect(await answeredTo(port, member.own)).toBe("HTTP/1.1 200 OK");
  await stop();
});

test("a removed member is disconnected immediately, during a response, and an added one disturbs none", async () => {
  using made = await members("owner", "entry", "second", "third");
  const [owner, member, second, third] = made;
  const { listener, reached, stop } = listen(
    owner,
    [member, second],
    () =>
      new Response(
        new ReadableStream({
          start: (controller) => controller.enqueue("begun"),
        }),
      ),
  );
  const port = Number(listener.url.port);
  using client = clientOf(member);
  const reader = (await ask(client, reached)).body?.getReader();
  const first = await reader?.read();
  expect(Buffer.from(first?.value ?? []).toString()).toBe("begun");
  let isOver = false;
  const rest = reader?.read().then(
    () => "more",
    () => "broken",
  );
  void rest?.then(() => {
    isOver = true;
  });

  listener.admit([member, second, third].map(({ own }) => own.cert));
  for (let n = 0; n < 10; n++) {
    using of = clientOf(third);
    const { body } = await ask(of, reached);
    await body?.cancel();
  }
  expect(isOver).toBe(false);

  const removedAt = performance.now();
  listener.admit([second, third].map(({ own }) => own.cert));
  expect(await rest).toBe("broken");
  expect(performance.now() - removedAt).toBeLessThan(500);
  expect(await codeOf(ask(client, reached))).toEqual(UNREACHABLE);
  expect(await answeredTo(port, member.own)).toBe(null);
  await stop();
});

test("a server with another certificate is sent nothing, even if the certificate is a member's", async () => {
  using made = await members("owner", "entry", "other");
  const [owner, member, other] = made;
  const raw = rawOwner(other, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
  using client = clientOf(member);
  const posing = { ...raw.reached, host_id: "owner", certificate: owner.own.cert };
  expect(await codeOf(ask(client, posing))).toEqual(UNREACHABLE);
  expect(raw.asked).toBe("");
  expect((await ask(client, raw.reached)).status).toBe(200);
  raw.stop();
});

test("a host that is down or silent is unreachable after a second", async () => {
  using made = await members("owner", "entry");
  const [owner, member] = made;
  using client = clientOf(member);
  const silent = createSocketServer(() => {}).listen(0, "127.0.0.1");
  await new Promise((listening) => silent.once("listening", listening));
  const { port } = silent.address() as { port: number };
  const at = (address: string) => ({ host_id: "owner", address, certificate: owner.own.cert });
  const startedAt = performance.now();
  expect(await codeOf(ask(client, at(`127.0.0.1:${port}`)))).toEqual(UNREACHABLE);
  const ms = performance.now() - startedAt;
  expect(ms).toBeGreaterThan(950);
  expect(ms).toBeLessThan(1500);
  silent.close();
  await until(() => !silent.listening);
  expect(await codeOf(ask(client, at(`127.0.0.1:${port}`)))).toEqual(UNREACHABLE);
  expect(await codeOf(ask(client, at("no address")))).toEqual(UNREACHABLE);
  expect(await codeOf(ask(client, at("no-such-host.invalid:1")))).toEqual(UNREACHABLE);
});

test("a stall of this process during the connect does not make a host unreachable", async () => {
  using made = await members("owner", "entry");
  const [owner, member] = made;
  const { reached, stop } = listen(owner, [member], () => new Response("hello"));
  using client = clientOf(member, { connectMs: 300 });
  const pending = ask(client, reached);
  await Bun.sleep(0);
  Bun.sleepSync(500);
  expect((await pending).status).toBe(200);
  await stop();
});

test("connections to a former member are closed", async () => {
  using made = await members("owner", "entry");
  const [owner, member] = made;
  const { reached, stop } = listen(
    owner,
    [member],
    () => new Response(new ReadableStream({ start: (c) => c.enqueue("a") })),
  );
  using client = clientOf(member);
  const { body } = await ask(client, reached);
  client.keepOnly([]);
  await expect(new Response(body).text()).rejects.toThrow();
  expect((await ask(client, reached)).status).toBe(200);
  expect(client.opened).toBe(2);
  await stop();
});
