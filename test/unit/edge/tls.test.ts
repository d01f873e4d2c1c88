import { X509Certificate } from "node:crypto";
import { chmodSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readPair } from "../../../daemon/core/config/certificate.ts";
import { ConfigError } from "../../../daemon/core/config/config.ts";
import { loadCertificate, planListen } from "../../../daemon/edge/http/tls.ts";
import { loadSelfSigned } from "../../../daemon/edge/http/tls-self-signed.ts";
import { configOf, newCertificate, scratch } from "./tls-fixture.ts";

const DAY_MS = 86_400_000;

test.each([
  ["127.0.0.1:8080", "127.0.0.1", 8080, "http://127.0.0.1:8080"],
  ["localhost:0", "localhost", 0, "http://localhost:0"],
  ["[::1]:8443", "::1", 8443, "http://[::1]:8443"],
  ["127.9.9.9:1", "127.9.9.9", 1, "http://127.9.9.9:1"],
])("listens on %s without TLS", (listen, host, port, url) => {
  const plan = { hostname: host, port, tls: "off", url, ports_domain: null, trusted_proxies: [] };
  expect(planListen(configOf({ ROOMD_HTTP_LISTEN: listen }))).toEqual(plan);
});

test.each(["roomd.localhost", "ports.example.org", "P.example.org:8443"])("accepts ports.domain = %j", (domain) => {
  expect(planListen(configOf({ ROOMD_PORTS_DOMAIN: domain })).ports_domain).toBe(domain.toLowerCase());
});

test.each([
  "*.example.org",
  "https://example.org",
  "localhost",
  ".example.org",
  "example.org.",
  "a b",
  "example.org/x",
])("rejects ports.domain = %j", (domain) => {
  expect(() => planListen(configOf({ ROOMD_PORTS_DOMAIN: domain }))).toThrow(/^ports\.domain = /);
});

test.each(["8080", ":8080", "::1:8080", "[::1]", "[localhost]:1", "127.0.0.1:65536", "127.0.0.1:http", "", "a b:1"])(
  "rejects http.listen = %j",
  (listen) => {
    expect(() => planListen(configOf({ ROOMD_HTTP_LISTEN: listen }))).toThrow(/^http\.listen = /);
  },
);

test.each(["0.0.0.0:8080", "[::]:8080", "192.0.2.7:8080", "rooms.example.org:8080"])(
  "rejects %s without TLS",
  (listen) => {
    expect(() => planListen(configOf({ ROOMD_HTTP_LISTEN: listen }))).toThrow(ConfigError);
    expect(() => planListen(configOf({ ROOMD_HTTP_LISTEN: listen }))).toThrow(
      /tls\.cert.*tls\.key.*tls\.mode.*http\.insecure/,
    );
    expect(planListen(configOf({ ROOMD_HTTP_LISTEN: listen, ROOMD_HTTP_INSECURE: "true" })).tls).toBe("off");
    expect(planListen(configOf({ ROOMD_HTTP_LISTEN: listen, ROOMD_TLS_MODE: "self-signed" })).tls).toBe("self-signed");
  },
);

test("accepts certificate files as TLS, and names missing and conflicting settings", () => {
  expect(planListen(configOf({ ROOMD_TLS_CERT: "/c", ROOMD_TLS_KEY: "/k" })).tls).toBe("files");
  expect(() => planListen(configOf({ ROOMD_TLS_CERT: "/c" }))).toThrow(/^tls\.key /);
  expect(() => planListen(configOf({ ROOMD_TLS_MODE: "files" }))).toThrow(/^tls\.cert /);
  expect(() => planListen(configOf({ ROOMD_TLS_MODE: "self-signed", ROOMD_TLS_CERT: "/c" }))).toThrow(/exclude/);
});

test("names the service as clients reach it", () => {
  const wild = { ROOMD_HTTP_LISTEN: "0.0.0.0:8443", ROOMD_TLS_MODE: "self-signed" };
  expect(planListen(configOf(wild)).url).toBe("https://localhost:8443");
  expect(planListen(configOf({ ...wild, ROOMD_HTTP_BASE_URL: "https://r.example/" })).url).toBe("https://r.example");
  expect(() => planListen(configOf({ ROOMD_HTTP_BASE_URL: "r.example" }))).toThrow(/http.base_url/);
});

test("names the invalid file", async () => {
  using directory = scratch();
  const { cert, key } = await newCertificate(directory.path);
  const other = await newCertificate(directory.path);
  const file = (name: string, text: string) => {
    writeFileSync(join(directory.path, name), text);
    return join(directory.path, name);
  };
  const [c, k] = [file("c", cert), file("k", key)];
  expect(readPair(c, k)).toEqual({ cert, key });
  expect(() => readPair("/nowhere", k)).toThrow("tls.cert = /nowhere: ");
  expect(() => readPair(c, directory.path)).toThrow(`tls.key = ${directory.path}: `);
  const [half, empty, others] = [file("half", cert.slice(0, 200)), file("empty", ""), file("other", other.key)];
  expect(() => readPair(half, k)).toThrow(`tls.cert = ${half}: `);
  expect(() => readPair(c, empty)).toThrow(`tls.key = ${empty}: `);
  expect(() => readPair(c, others)).toThrow(`tls.key = ${others}: `);
  const config = configOf({ ROOMD_TLS_CERT: c, ROOMD_TLS_KEY: k });
  expect(await loadCertificate(config, { tls: "/unused" })).toEqual({ cert, key });
  expect(await loadCertificate(configOf({}), { tls: "/unused" })).toBeNull();
});

test("creates a certificate once, for every name of the service", async () => {
  using directory = scratch();
  const tls = join(directory.path, "tls");
  const config = configOf({
    ROOMD_TLS_MODE: "self-signed",
    ROOMD_HTTP_LISTEN: "192.0.2.7:8443",
    ROOMD_HTTP_BASE_URL: "https://rooms.example.org",
    ROOMD_PORTS_DOMAIN: "ports.example.org:8443",
  });
  const made = await loadCertificate(config, { tls });
  const certificate = new X509Certificate(made?.cert ?? "");
  const names = ["localhost", hostname(), "rooms.example.org", "web-abc.ports.example.org"];
  for (const name of names) expect(certificate.checkHost(name)).toBeDefined();
  for (const ip of ["127.0.0.1", "::1", "192.0.2.7"]) expect(certificate.checkIP(ip)).toBeDefined();
  expect(certificate.verify(certificate.publicKey)).toBe(true);
  const days = (certificate.validToDate.getTime() - certificate.validFromDate.getTime()) / DAY_MS;
  expect(days).toBe(825);
  expect(statSync(join(tls, "key.pem")).mode & 0o777).toBe(0o600);
  expect(statSync(tls).mode & 0o777).toBe(0o700);
  expect(await loadCertificate(config, { tls })).toEqual(made);
});

test("creates a new one near its end, for other names, and if half of it is lost", async () => {
  using directory = scratch();
  const { path } = directory;
  const first = await loadSelfSigned(path, ["a.example"]);
  expect(await loadSelfSigned(path, ["a.example"], Date.now() + 790 * DAY_MS)).toEqual(first);
  const renewed = await loadSelfSigned(path, ["a.example"], Date.now() + 800 * DAY_MS);
  expect(renewed).not.toEqual(first);
  const renamed = await loadSelfSigned(path, ["b.example"], Date.now() + 800 * DAY_MS);
  expect(renamed).not.toEqual(renewed);
  expect(await loadSelfSigned(path, [], Date.now() + 800 * DAY_MS)).not.toEqual(renamed);
  chmodSync(join(path, "key.pem"), 0o600);
  writeFileSync(join(path, "key.pem"), first.key);
  const mended = await loadSelfSigned(path, []);
  expect(readFileSync(join(path, "key.pem"), "utf8")).toBe(mended.key);
  expect(readPair(join(path, "cert.pem"), join(path, "key.pem"))).toEqual(mended);
});

test("is trusted by a client that has its file", async () => {
  using directory = scratch();
  const certificate = await loadSelfSigned(directory.path, []);
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, tls: certificate, fetch: () => new Response("hello") });
  for (const host of ["127.0.0.1", "localhost"]) {
    const answer = await fetch(`https://${host}:${server.port}`, { tls: { ca: certificate.cert } });
    expect(await answer.text()).toBe("hello");
  }
  await expect(fetch(`https://127.0.0.1:${server.port}`)).rejects.toThrow(/verify|self.signed/);
  await server.stop(true);
});
