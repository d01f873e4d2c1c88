/** Registries that do not keep to what they say: another image than the one that is named, other places to fetch from, contents without an end. */
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type Json, TestDaemon } from "../harness/daemon.ts";
import { freePort } from "../harness/free-port.ts";
import { issue } from "../harness/issued-certificate.ts";

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
/** What it answers for any manifest, and for blobs by digest. */
let manifest = "";
let blobs: Record<string, () => Response> = {};
let asked: string[] = [];

beforeAll(async () => {
  if (!asRoot) return;
  daemon = await TestDaemon.start({ env: { ROOMD_ACCELERATION: "tcg", ROOMD_POOL_SIZE: "0" } });
  const port = await freePort();
  host = `localhost:${port}`;
  const { authority, cert, key } = await issue(["localhost"]);
  trust = join("/etc/containers/certs.d", host);
  mkdirSync(trust, { recursive: true });
  writeFileSync(join(trust, "ca.crt"), authority);
  registry = Bun.serve({
    ...{ hostname: "127.0.0.1", port, tls: { cert, key }, idleTimeout: 60 },
    fetch: (request) => {
      const { pathname } = new URL(request.url);
      asked.push(pathname);
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
  asked = [];
});

/** An image whose manifest has one more field or layer than it should. */
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

test.skipIf(!asRoot)("an image that is named by its digest is that one, or none", async () => {
  offer();
  const other = digestOf("another manifest");
  expect(await refusedOf(`docker://${host}/app@${other}`)).toMatchObject({ code: "image_invalid" });
  expect(asked.filter((path) => path.includes("/blobs/"))).toEqual([]);
});

test.skipIf(!asRoot)("what is to be fetched from elsewhere is not fetched", async () => {
  await using elsewhere = await listening();
  offer({}, { urls: [`http://127.0.0.1:${elsewhere.port}/config`] });
  expect(await refusedOf(`docker://${host}/app:1`)).toMatchObject({ code: "image_invalid" });
  const layer = { mediaType: "application/vnd.oci.image.layer.v1.tar+gzip", digest: digestOf("x"), size: 1 };
  offer({ layers: [{ ...layer, urls: [`http://127.0.0.1:${elsewhere.port}/layer`] }] });
  expect(await refusedOf(`docker://${host}/app:1`)).toMatchObject({ code: "image_invalid" });
  expect(elsewhere.asked).toBe(0);
});

test.skipIf(!asRoot)("a layer that is longer than it says ends with what it says", async () => {
  const digest = digestOf("a small layer");
  offer({ layers: [{ mediaType: "application/vnd.oci.image.layer.v1.tar+gzip", digest, size: 13 }] });
  let sent = 0;
  // What can be made small would be.
  const piece = crypto.getRandomValues(new Uint8Array(MIB / 16));
  blobs[digest] = () =>
    new Response(
      new ReadableStream({
        // In turns of its own: the test has the same loop.
        pull: async (controller) => {
          await new Promise((turn) => setTimeout(turn, 1));
          sent += piece.byteLength;
          controller.enqueue(piece.slice());
        },
      }),
    );
  expect(await refusedOf(`docker://${host}/app:1`)).toMatchObject({ code: "image_too_large" });
  // Four MiB are let be written, and some are on their way.
  expect(sent).toBeLessThan(64 * MIB);
});

/** A server that counts who asks. */
async function listening() {
  const counted = { asked: 0 };
  const server = Bun.serve({
    ...{ hostname: "127.0.0.1", port: 0 },
    fetch: () => {
      counted.asked++;
      return new Response("no");
    },
  });
  return {
    port: server.port,
    get asked() {
      return counted.asked;
    },
    [Symbol.asyncDispose]: async () => void (await server.stop(true)),
  };
}
