/**
 * Client of an object store with the S3 protocol: a few requests, each signed, with a timeout, and retried if that may help. From responses
 * only a few elements are read, and 4 MiB at most.
 */

import { backoffMs } from "../../../shared/backoff.ts";
import { sleep, startTimer, stopTimer, timeoutSignal, wallMs } from "../../core/clock.ts";
import { describeError } from "../../core/service-error.ts";
import type { S3Plan } from "./deps.ts";
import { encoded, sha256, signed } from "./sign.ts";
import { decodeEntities, elementsIn, textIn } from "./xml.ts";

const TRIES = 5;
const RETRY_MS = { first: 500, most: 8000 } as const;
/** Deadline of one request, with its body; a part may be 256 MiB. */
const DEADLINE_MS = 15 * 60_000;
const SHORT_DEADLINE_MS = 60_000;
/** Idle timeout while an object is read. */
const SILENCE_MS = 60_000;
const MAX_ANSWER_BYTES = 4 * 1024 ** 2;
/** Maximum pages of a list, with a thousand entries each. */
const MAX_PAGES = 1000;

/** The message names the problem, `hint` the remedy. */
export class StoreError extends Error {
  override name = "StoreError";
  readonly hint: string | null;
  /** The store's error code; empty if it returned none. */
  readonly code: string;
  constructor(message: string, hint: string | null, code = "", options: ErrorOptions = {}) {
    super(message, options);
    this.hint = hint;
    this.code = code;
  }
}

export interface StoredObject {
  key: string;
  size_bytes: number;
  /** By the clock of the object store; infinite if it does not report the time. */
  storedMs: number;
}

export interface UnfinishedUpload {
  key: string;
  upload_id: string;
}

export type StoreLocation = Pick<S3Plan, "endpoint" | "bucket" | "credentials">;

interface StoreRequest {
  method: string;
  key?: string;
  query?: Record<string, string>;
  headers?: Record<string, string>;
  body?: Uint8Array;
  deadlineMs?: number;
  signal?: AbortSignal;
}

export class ObjectStore {
  readonly #place: StoreLocation;
  readonly #signal: AbortSignal | undefined;

  constructor(place: StoreLocation, signal?: AbortSignal) {
    this.#place = place;
    this.#signal = signal;
  }

  /** All objects with this key prefix, sorted by key. */
  async list(prefix: string): Promise<StoredObject[]> {
    const found: StoredObject[] = [];
    let token = "";
    for (let page = 0; page < MAX_PAGES; page++) {
      const query = { "list-type": "2", prefix, ...(token !== "" && { "continuation-token": token }) };
      const text = await this.#text({ method: "GET", query });
      for (const each of elementsIn(text, "Contents")) {
        const storedMs = Date.parse(textIn(each, "LastModified")) || Number.POSITIVE_INFINITY;
        found.push({ key: textIn(each, "Key"), size_bytes: Number(textIn(each, "Size")), storedMs });
      }
      token = textIn(text, "NextContinuationToken");
      if (textIn(text, "IsTruncated") !== "true" || token === "") break;
    }
    return found;
  }

  /** Uploads that were started and not completed; empty if the store does not support the list. */
  async unfinished(prefix: string): Promise<UnfinishedUpload[]> {
    try {
      const text = await this.#text({ method: "GET", query: { uploads: "", prefix } });
      return elementsIn(text, "Upload").map((each) => ({
        key: textIn(each, "Key"),
        upload_id: textIn(each, "UploadId"),
      }));
    } catch (error) {
      if (error instanceof StoreError && /^(NotImplemented|MethodNotAllowed)$/.test(error.code)) return [];
      throw error;
    }
  }

  /** Returns the upload's id. */
  async begin(key: string): Promise<string> {
    const headers = { "content-type": "application/octet-stream" };
    const text = await this.#text({ method: "POST", key, query: { uploads: "" }, headers });
    const id = textIn(text, "UploadId");
    if (id === "") throw new StoreError("The object store started an upload without an id.", null);
    return id;
  }

  /** Returns its ETag. */
  async putPart(key: string, upload_id: string, number: number, body: Uint8Array): Promise<string> {
    const query = { partNumber: String(number), uploadId: upload_id };
    const answer = await this.#ask({ method: "PUT", key, query, body, deadlineMs: DEADLINE_MS });
    await answer.body?.cancel();
    return answer.headers.get("etag") ?? "";
  }

  async complete(key: string, upload_id: string, etags: readonly string[]): Promise<void> {
    const parts = etags.map(
      (etag, at) => `<Part><PartNumber>${at + 1}</PartNumber><ETag>${escaped(etag)}</ETag></Part>`,
    );
    const body = Buffer.from(`<CompleteMultipartUpload>${parts.join("")}</CompleteMultipartUpload>`);
    const text = await this.#text({
      method: "POST",
      key,
      query: { uploadId: upload_id },
      body,
      deadlineMs: DEADLINE_MS,
    });
    // The store sends status 200 before the outcome is known.
    const code = textIn(text, "Code");
    if (code !== "") throw new StoreError(`The object store did not complete the upload: ${code}.`, null, code);
  }

  /** Again is nothing. */
  async abandon(key: string, upload_id: string): Promise<void> {
    await this.#text({ method: "DELETE", key, query: { uploadId: upload_id } }).catch((error: unknown) => {
      if (!(error instanceof StoreError && error.code === "NoSuchUpload")) throw error;
    });
  }

  async remove(key: string): Promise<void> {
    await this.#text({ method: "DELETE", key });
  }

  /** The content of an object; resumes after a lost connection. */
  async *read(key: string): AsyncGenerator<Uint8Array> {
    let at = 0;
    let etag: string | null = null;
    for (let cuts = 0; ; ) {
      const headers: Record<string, string> =
        at === 0 ? {} : { range: `bytes=${at}-`, ...(etag && { "if-match": etag }) };
      const silent = new AbortController();
      const listen = () => startTimer(() => silent.abort(new Error("no data for a minute")), SILENCE_MS);
      const answer = await this.#ask({ method: "GET", key, headers, deadlineMs: 0, signal: silent.signal });
      if (at > 0 && answer.status !== 206)
        throw new StoreError("The object store cannot resume the interrupted download.", null);
      etag ??= answer.headers.get("etag");
      const length = Number(answer.headers.get("content-length"));
      const whole = at + length;
      let timer = listen();
      try {
        for await (const bytes of answer.body ?? []) {
          stopTimer(timer);
          at += bytes.length;
          yield bytes;
          timer = listen();
        }
        if (at >= whole) return;
        throw new Error(`${whole - at} bytes are missing`);
      } catch (error) {
        this.#signal?.throwIfAborted();
        if (++cuts >= TRIES) throw this.#unreachable(error);
        await sleep(backoffMs(RETRY_MS, cuts - 1), this.#signal);
      } finally {
        stopTimer(timer);
      }
    }
  }

  async #text(request: StoreRequest): Promise<string> {
    return await textOf(await this.#ask(request));
  }

  /** Returns only responses with a 2xx status. Throws StoreError. */
  async #ask(request: StoreRequest): Promise<Response> {
    for (let tried = 1; ; tried++) {
      this.#signal?.throwIfAborted();
      try {
        const answer = await this.#once(request);
        if (answer.ok) return answer;
        const error = this.#refused(answer.status, await textOf(answer));
        if (tried >= TRIES || !mayHelp(answer.status)) throw error;
      } catch (error) {
        this.#signal?.throwIfAborted();
        if (error instanceof StoreError) throw error;
        if (tried >= TRIES) throw this.#unreachable(error);
      }
      await sleep(backoffMs(RETRY_MS, tried - 1), this.#signal);
    }
  }

  async #once({
    method,
    key,
    query = {},
    headers = {},
    body,
    deadlineMs = SHORT_DEADLINE_MS,
    signal,
  }: StoreRequest): Promise<Response> {
    const { endpoint, bucket, credentials } = this.#place;
    const path = [bucket, ...(key?.split("/") ?? [])].map(encoded).join("/");
    const url = new URL(`/${path}`, endpoint);
    url.search = Object.entries(query)
      .map(([name, value]) => `${encoded(name)}=${encoded(value)}`)
      .join("&");
    const bodySha256 = sha256(body ?? "");
    const send = signed(credentials, { method, url, headers, bodySha256 }, new Date(wallMs()));
    const signals = [this.#signal ?? [], signal ?? [], deadlineMs > 0 ? timeoutSignal(deadlineMs) : []].flat();
    const sent = {
      method,
      headers: send,
      body: body ?? null,
      redirect: "manual",
      signal: AbortSignal.any(signals),
    } as const;
    return await fetch(url, sent);
  }

  #unreachable(cause: unknown): StoreError {
    const { origin } = this.#place.endpoint;
    return new StoreError(
      `The object store at ${origin} cannot be reached: ${describeError(cause)}.`,
      "Check backup.s3.endpoint, and whether this host can reach it.",
      "",
      { cause },
    );
  }

  #refused(status: number, text: string): StoreError {
    const { bucket, endpoint } = this.#place;
    const [code, message] = [textIn(text, "Code"), decodeEntities(textIn(text, "Message")).slice(0, 300)];
    const [detail, hint] = MEANT[code] ?? (status === 403 ? MEANT.AccessDenied : undefined) ?? UNKNOWN;
    const said = message === "" ? `status ${status}` : message.replace(/\.$/, "");
    const words = { bucket, said, code: code || String(status), origin: endpoint.origin };
    return new StoreError(filled(detail, words), hint === null ? null : filled(hint, words), code);
  }
}

/** Throws StoreError if the text is too long. */
async function textOf({ body }: Response): Promise<string> {
  const parts: Uint8Array[] = [];
  let left = MAX_ANSWER_BYTES;
  for await (const bytes of body ?? []) {
    left -= bytes.length;
    if (left < 0) throw new StoreError("The object store's response is too long.", null);
    parts.push(bytes);
  }
  return Buffer.concat(parts).toString();
}

type Meaning = readonly [detail: string, hint: string | null];
const UNKNOWN: Meaning = ["The object store rejected the request: {said} ({code}).", null];
const KEYS: Meaning = [
  "The object store rejects the key: {said}.",
  "Check backup.s3.key_id and the file of backup.s3.secret_file.",
];
const MEANT: Record<string, Meaning | undefined> = {
  InvalidAccessKeyId: KEYS,
  SignatureDoesNotMatch: KEYS,
  AccessDenied: [
    "The object store denies the key this operation in bucket {bucket}: {said}.",
    "The key needs to list the bucket, and to put, get, delete and abort uploads of objects in it.",
  ],
  NoSuchBucket: [
    "There is no bucket {bucket} at {origin}.",
    "Create it, or set backup.s3.bucket to an existing bucket.",
  ],
  NoSuchKey: ["There is no such backup in bucket {bucket}.", "`roomd backup list` shows the existing backups."],
  RequestTimeTooSkewed: [
    "The object store reports that this host's clock is wrong.",
    "Synchronize the clock, for example with systemd-timesyncd.",
  ],
  AuthorizationHeaderMalformed: ["The object store rejects the request: {said}.", "Check backup.s3.region."],
  PermanentRedirect: [
    "Bucket {bucket} is at another endpoint: {said}.",
    "Check backup.s3.endpoint and backup.s3.region.",
  ],
};

const filled = (text: string, words: Record<string, string>) =>
  text.replace(/\{(\w+)\}/g, (_, name: string) => words[name] ?? "");

const mayHelp = (status: number) => status >= 500 || status === 408 || status === 429;

const escaped = (text: string) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;");
