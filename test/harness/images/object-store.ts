/** An object store for tests with the part of the S3 protocol that backups need, and configurable faults. */
import { createHash } from "node:crypto";
import { signed } from "../../../daemon/domain/backups/sign.ts";

export const STORE = {
  bucket: "backups",
  key_id: "KEYID",
  secret: "the secret of the tests",
  region: "us-east-1",
} as const;

interface Upload {
  key: string;
  parts: Map<number, Buffer>;
}

export class ObjectStoreServer {
  readonly objects = new Map<string, Buffer>();
  readonly uploads = new Map<string, Upload>();
  /** The time of its clock; null for the present. */
  time: Date | null = null;
  readonly #storedAt = new Map<string, Date>();
  readonly asked: string[] = [];
  /** The fault of a request; null if it is answered correctly. */
  fault: (method: string, url: URL, server: ObjectStoreServer) => Response | Promise<Response> | "cut" | null = () =>
    null;
  readonly #server: Bun.Server<undefined>;
  #count = 0;

  constructor() {
    this.#server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      idleTimeout: 60,
      maxRequestBodySize: 1024 ** 3,
      fetch: (request) => this.#answer(request),
    });
  }

  get endpoint(): string {
    return `http://127.0.0.1:${this.#server.port}`;
  }

  async stop(): Promise<void> {
    await this.#server.stop(true);
  }

  async #answer(request: Request): Promise<Response> {
    const url = new URL(request.url);
    this.asked.push(`${request.method} ${url.pathname}${url.search}`);
    const body = Buffer.from(await request.arrayBuffer());
    const fault = await this.fault(request.method, url, this);
    if (fault === "cut") return this.#cut(decodeURIComponent(url.pathname).slice(`/${STORE.bucket}/`.length));
    if (fault) return fault;
    const refused = this.#refusal(request, url, body);
    if (refused) return refused;
    const [, bucket, ...rest] = decodeURIComponent(url.pathname).split("/");
    if (bucket !== STORE.bucket) return problem(404, "NoSuchBucket");
    const key = rest.join("/");
    return key === "" ? this.#list(url) : this.#ofObject(request, url, key, body);
  }

  /** Half of an object, then nothing. */
  #cut(key: string): Response {
    const bytes = this.objects.get(key) ?? Buffer.alloc(0);
    const half = bytes.subarray(0, bytes.length >> 1);
    const stream = new ReadableStream({
      start: (controller) => {
        controller.enqueue(half);
        controller.close();
      },
    });
    return new Response(stream, { headers: { etag: etagOf(bytes), "x-cut": "1" } });
  }

  #refusal(request: Request, url: URL, body: Buffer): Response | null {
    const given = request.headers.get("authorization") ?? "";
    if (!given.includes(`Credential=${STORE.key_id}/`)) return problem(403, "InvalidAccessKeyId");
    const bodySha256 = createHash("sha256").update(body).digest("hex");
    if (request.headers.get("x-amz-content-sha256") !== bodySha256) return problem(400, "XAmzContentSHA256Mismatch");
    const names = (/SignedHeaders=([^,]+)/.exec(given)?.[1] ?? "").split(";");
    const own = names.filter((name) => name !== "host" && !name.startsWith("x-amz-"));
    const headers = Object.fromEntries(own.map((name) => [name, request.headers.get(name) ?? ""]));
    const at = (request.headers.get("x-amz-date") ?? "").replace(/(....)(..)(..)T(..)(..)(..)Z/, "$1-$2-$3T$4:$5:$6Z");
    const expected = signed(STORE, { method: request.method, url, headers, bodySha256 }, new Date(at)).authorization;
    return expected === given ? null : problem(403, "SignatureDoesNotMatch");
  }

  #list(url: URL): Response {
    const prefix = url.searchParams.get("prefix") ?? "";
    if (url.searchParams.has("uploads")) {
      const found = [...this.uploads].filter(([, { key }]) => key.startsWith(prefix));
      return xml(found.map(([id, { key }]) => `<Upload><Key>${key}</Key><UploadId>${id}</UploadId></Upload>`).join(""));
    }
    const keys = [...this.objects.keys()].filter((key) => key.startsWith(prefix)).sort();
    const from = Number(url.searchParams.get("continuation-token") ?? 0);
    const page = keys.slice(from, from + 2);
    const more = from + 2 < keys.length;
    const items = page.map(
      (key) =>
        `<Contents><Key>${key}</Key><LastModified>${this.#storedAt.get(key)?.toISOString()}</LastModified><Size>${this.objects.get(key)?.length}</Size></Contents>`,
    );
    const next = more ? `<NextContinuationToken>${from + 2}</NextContinuationToken>` : "";
    return xml(`<IsTruncated>${more}</IsTruncated>${next}${items.join("")}`);
  }

  #ofObject(request: Request, url: URL, key: string, body: Buffer): Response {
    const id = url.searchParams.get("uploadId") ?? "";
    const upload = this.uploads.get(id);
    if (request.method === "POST" && url.searchParams.has("uploads")) {
      const made = `upload-${++this.#count}`;
      this.uploads.set(made, { key, parts: new Map() });
      return xml(`<UploadId>${made}</UploadId>`);
    }
    if (id !== "" && !upload) return problem(404, "NoSuchUpload");
    if (upload && request.method === "PUT") {
      upload.parts.set(Number(url.searchParams.get("partNumber")), body);
      return new Response(null, { headers: { etag: etagOf(body) } });
    }
    if (upload && request.method === "DELETE") this.uploads.delete(id);
    else if (upload) {
      this.objects.set(key, Buffer.concat([...upload.parts].sort(([a], [b]) => a - b).map(([, part]) => part)));
      this.#storedAt.set(key, this.time ?? new Date());
      this.uploads.delete(id);
      return xml("<Key/>");
    } else if (request.method === "DELETE") this.objects.delete(key);
    else return this.#read(request, key);
    return new Response(null, { status: 204 });
  }

  #read(request: Request, key: string): Response {
    const bytes = this.objects.get(key);
    if (!bytes) return problem(404, "NoSuchKey");
    const from = /^bytes=(\d+)-$/.exec(request.headers.get("range") ?? "")?.[1];
    const headers = { etag: etagOf(bytes) };
    if (from === undefined) return new Response(new Uint8Array(bytes), { headers });
    return new Response(new Uint8Array(bytes.subarray(Number(from))), { status: 206, headers });
  }
}

const etagOf = (bytes: Buffer) => `"${createHash("md5").update(bytes).digest("hex")}"`;
const xml = (inner: string) => new Response(`<?xml version="1.0"?><Result>${inner}</Result>`);

export function problem(status: number, code: string): Response {
  return new Response(`<Error><Code>${code}</Code><Message>said of ${code}.</Message></Error>`, { status });
}
