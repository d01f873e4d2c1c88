/** Registries that violate their own metadata: another image than the named one, redirects to other hosts, endless contents. */
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type Json, TestDaemon } from "../../harness/daemon.ts";
import { readStream } from "../../harness/event-loop/streams.ts";
import { freePort } from "../../harness/free-port.ts";
import { issue } from "../../harness/issued-certificate.ts";

const OCI = "application/vnd.oci.image.manifest.v1+json";
const asRoot = process.getuid?.() === 0;
if (!asRoot) console.log("lying registries: left out, because only root builds templates");

const digestOf = (text: string | Uint8Array) => `sha256:${createHash("sha256").update(text).digest("hex")}`;
const CONFIG = JSON.stringify({ os: "linux", architecture: "amd64", rootfs: { type: "layers", diff_ids: [] } });
const MIB = 1024 ** 2;

let daemon: TestDaemon;
let registry: ReturnType<typeof Bun.serve>;
let trust: string;
let host: string;
/** Its response to any manifest request, and to blob requests by digest. */
let manifest = "";
let blobs: Record<string, () => Response> = {};
let requestedPaths: string[] = [];
/** Token endpoint that it requires; null: no authentication. */
let realm: string | null = null;

beforeAll(async () => {
  if (!asRoot) return;
  const port = await freePort();
  host = `localhost:${port}`;
  // A name of a network that is not the registry's users' to reach.
  const hosts = join(mkdtempSync("/tmp/roomd-hosts-"), "hosts");
  writeFileSync(hosts, "127.0.0.1 internal.example\n");
  daemon = await TestDaemon.start({
    env: {
      ...{ ROOMD_ACCELERATION: "tcg", ROOMD_POOL_SIZE: "0" },
      ...{ ROOMD_TEMPLATE_REGISTRIES: host, ROOMD_EGRESS_HOSTS_FILE: hosts },
    },
  });
  const { authority, cert, key } = await issue(["localhost"]);
  trust = join("/etc/containers/certs.d", host);
  mkdirSync(trust, { recursive: true });
  writeFileSync(join(trust, "ca.crt"), authority);
  registry = Bun.serve({
    ...{ hostname: "127.0.0.1", port, tls: { cert, key }, idleTimeout: 60 },
    fetch: (request) => {
      const { pathname } = new URL(request.url);
      requestedPaths.push(pathname);
      if (realm !== null && !request.headers.has("authorization")) {
        const challenge = `Bearer realm="${realm}",service="registry"`;
        return new Response("{}", { status: 401, headers: { "www-authenticate": challenge } });
      }
      if (pathname.includes("/manifests/")) return new Response(manifest, { headers: { "content-type": OCI } });
      const digest = pathname.split("/").at(-1) ?? "";
      return blobs[digest]?.() ?? new Response("{}", { status: pathname === "/v2/" ? 200 : 404 });
    },
  });
});
afterAll(async () => {
  registry?.stop(true);
  if (trust) rmSync(trust, { recursive: true, force: true });
  await daemon?.stop();
});
afterEach(() => {
  realm = null;
  requestedPaths = [];
});

/** An image with an unexpected field or layer in its manifest. */
function offer(more: Json = {}, config: Json = {}): void {
  manifest = JSON.stringify({
    ...{ schemaVersion: 2, mediaType: OCI, layers: [] },
    config: {
      mediaType: "application/vnd.oci.image.config.v1+json",
      digest: digestOf(CONFIG),
      size: CONFIG.length,
      ...config,
    },
    ...more,
  });
  blobs = { [digestOf(CONFIG)]: () => new Response(CONFIG) };
}

async function refusedOf(reference: string): Promise<Json> {
  const { status, stdout, stderr } = await daemon.cli(["template", "import", "lied", reference, "--json"]);
  expect([status, stdout]).toEqual([1, ""]);
  expect(readdirSync(join(daemon.dataDir, "templates", "lied"))).toEqual([]);
  expect(readdirSync(join(daemon.dataDir, "trials"))).toEqual([]);
  return JSON.parse(stderr);
}

test.skipIf(!asRoot)("an image that is named by digest must have that digest", async () => {
  offer();
  const other = digestOf("another manifest");
  expect(await refusedOf(`docker://${host}/app@${other}`)).toMatchObject({ code: "image_invalid" });
  expect(requestedPaths.filter((path) => path.includes("/blobs/"))).toEqual([]);
});

test.skipIf(!asRoot)("blobs with external URLs are not fetched", async () => {
  await using elsewhere = await listening();
  offer({}, { urls: [`http://127.0.0.1:${elsewhere.port}/config`] });
  expect(await refusedOf(`docker://${host}/app:1`)).toMatchObject({ code: "image_invalid" });
  const layer = { mediaType: "application/vnd.oci.image.layer.v1.tar+gzip", digest: digestOf("x"), size: 1 };
  offer({ layers: [{ ...layer, urls: [`http://127.0.0.1:${elsewhere.port}/layer`] }] });
  expect(await refusedOf(`docker://${host}/app:1`)).toMatchObject({ code: "image_invalid" });
  expect(elsewhere.asked).toBe(0);
});

/** A body without an end; `sent` counts its bytes. */
function endlessBody() {
  const counter = { sent: 0 };
  // Incompressible.
  const piece = crypto.getRandomValues(new Uint8Array(MIB / 16));
  const answer = () =>
    new Response(
      new ReadableStream({
        // In separate turns: the test shares the event loop.
        pull: async (controller) => {
          await new Promise((turn) => setTimeout(turn, 1));
          counter.sent += piece.byteLength;
          controller.enqueue(piece.slice());
        },
      }),
    );
  return { counter, answer };
}

const layerOf = (name: string, size: number) => ({
  ...{ mediaType: "application/vnd.oci.image.layer.v1.tar+gzip", digest: digestOf(name), size },
});

test.skipIf(!asRoot)("a layer longer than its declared size is aborted at that size", async () => {
  const { counter, answer } = endlessBody();
  offer({ layers: [layerOf("a small layer", 13)] });
  blobs[digestOf("a small layer")] = answer;
  expect(await refusedOf(`docker://${host}/app:1`)).toMatchObject({ code: "image_too_large" });
  // Four MiB are let be written, and some are on their way.
  expect(counter.sent).toBeLessThan(64 * MIB);
});

test.skipIf(!asRoot)("layers that exceed their declared sizes are bounded by the sum of those sizes", async () => {
  const { counter, answer } = endlessBody();
  const small = Array.from({ length: 5 }, (_, n) => `small ${n}`);
  // Individually each may be as long as the longest.
  offer({ layers: [layerOf("largest", 64 * MIB), ...small.map((name) => layerOf(name, 1))] });
  for (const name of ["largest", ...small]) blobs[digestOf(name)] = answer;
  expect(await refusedOf(`docker://${host}/app:1`)).toMatchObject({ code: "image_too_large" });
  expect(counter.sent).toBeLessThan(5 * 64 * MIB);
});

/** Why an organization's build of the registry's image has failed. */
async function failureForOrg(): Promise<Json> {
  const from = { image: `docker://${host}/app:1` };
  const { build_id } = await daemon.ok("POST", "/v1/templates", { template_id: "lied", from });
  const { events } = await readStream(daemon, `/v1/templates/lied/builds/${build_id}`);
  return events.at(-1).failure;
}

test.skipIf(!asRoot)("for an organization, redirects of a registry are followed to public addresses only", async () => {
  await using elsewhere = await listening();
  // Of an image of another processor's everything is fetched.
  const config = CONFIG.replace("amd64", "arm64");
  const digest = digestOf(config);
  offer({}, { digest, size: config.length });
  blobs = { [digest]: () => new Response(config) };
  expect(await failureForOrg()).toMatchObject({ code: "image_invalid", detail: expect.stringContaining("arm64") });
  const redirect = (to: string) => () => new Response(null, { status: 307, headers: { location: to } });
  blobs = { [digest]: redirect(`http://127.0.0.1:${elsewhere.port}/blob`) };
  // In the build's own network no server listens at that address.
  expect(await failureForOrg()).toMatchObject({ details: { step: "pull" } });
  for (const scheme of ["http", "https"]) {
    blobs = { [digest]: redirect(`${scheme}://internal.example:${elsewhere.port}/blob`) };
    expect(await failureForOrg()).toMatchObject({ details: { step: "pull" } });
  }
  expect(elsewhere.asked).toBe(0);
  blobs = { [digest]: redirect(`https://internal.example:${elsewhere.port}/blob`) };
  expect(await failureForOrg()).toMatchObject({
    code: "build_failed",
    details: { step: "pull", refused: [`internal.example:${elsewhere.port}`] },
  });
  realm = `https://internal.example:${elsewhere.port}/token`;
  expect(await failureForOrg()).toMatchObject({
    ...{ code: "build_failed", details: { refused: [`internal.example:${elsewhere.port}`] } },
  });
  expect(elsewhere.asked).toBe(0);
  // The operator's build uses the operator's network, and may be redirected anywhere.
  realm = null;
  blobs = { [digest]: redirect(`http://127.0.0.1:${elsewhere.port}/blob`) };
  await refusedOf(`docker://${host}/app:1`);
  expect(elsewhere.asked).toBeGreaterThan(0);
});

/** A server that counts its requests. */
async function listening() {
  const counts = { asked: 0 };
  const server = Bun.serve({
    ...{ hostname: "127.0.0.1", port: 0 },
    fetch: () => {
      counts.asked++;
      return new Response("no");
    },
  });
  return {
    port: server.port,
    get asked() {
      return counts.asked;
    },
    [Symbol.asyncDispose]: async () => void (await server.stop(true)),
  };
}
