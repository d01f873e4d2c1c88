/** File contents in a tool's calls: an operation's request body, and the part of a file in its response, from this or another host. */
import type { Operation } from "../../../shared/api/contract.ts";
import type { Problem } from "../../../shared/api/errors.ts";
import type { Done, Transfer } from "../../core/call/operation.ts";
import { NO_TRANSFER } from "../../core/call/operation.ts";
import type { Outcome } from "../pipeline/request-context.ts";

/** A call's file body and Range header. */
export interface FileUpload {
  body?: Uint8Array<ArrayBuffer>;
  /** Range header with a single range, which limits the length of the answer. */
  range?: string;
}

export interface FileBytes {
  bytes: Buffer;
  /** Size of the whole file. */
  size_bytes: number;
}

export function transferOf({ body, range }: FileUpload): Transfer {
  return { ...NO_TRANSFER, body: body ? new Blob([body]).stream() : null, range: range ?? null };
}

export function requestOf(url: string, method: string, headers: Record<string, string>, { body, range }: FileUpload) {
  const length: Record<string, string> = body ? { "content-length": String(body.byteLength) } : {};
  return new Request(url, {
    method,
    headers: { ...headers, ...length, ...(range === undefined ? {} : { range }) },
    ...(body ? { body } : {}),
  });
}

/** The answer of the room's owner host, as an outcome. */
export async function outcomeOf(answer: Response): Promise<Outcome> {
  const { status, headers } = answer;
  if (status < 400)
    return { kind: "done", status, done: { outcome: "forwarded", answer }, location: null, replayed: false };
  const after = headers.get("retry-after");
  const problem = (await answer.json()) as Problem;
  return {
    kind: "problem",
    status,
    problem,
    retry_after_seconds: after === null ? null : Number(after),
    replayed: false,
  };
}

/** The bytes of a response that is a part of a file; null if it has fields. */
export async function bytesOf({ bytes, answer }: Done<Operation>): Promise<FileBytes | null> {
  if (bytes) return { bytes: await wholeOf(bytes.stream), size_bytes: bytes.size_bytes };
  if (!answer || /json/.test(answer.headers.get("content-type") ?? "")) return null;
  const read = await wholeOf(answer.body);
  const size = /\/(\d+)$/.exec(answer.headers.get("content-range") ?? "")?.[1];
  return { bytes: read, size_bytes: size === undefined ? read.byteLength : Number(size) };
}

async function wholeOf(stream: ReadableStream<Uint8Array> | null): Promise<Buffer> {
  return Buffer.from(await new Response(stream).arrayBuffer());
}
