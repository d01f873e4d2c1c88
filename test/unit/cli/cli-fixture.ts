/** Fixture of the command-line tests: runs the command line as a process, and provides a stand-in for the service. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

/** The built binary: from its sources each start compiles the whole of the command line. */
export const BINARY = resolve("dist/roomd");
const KEY = "key-test";

export interface Ran {
  status: number;
  stdout: string;
  stderr: string;
}

interface RunOptions {
  env?: Record<string, string>;
  stdin?: string | Uint8Array;
  cwd?: string;
}

/** Runs `roomd` with these arguments and no environment but the given. */
export async function run(args: string[], { env = {}, stdin, cwd }: RunOptions = {}): Promise<Ran> {
  const child = Bun.spawn([BINARY, ...args], {
    env: { PATH: process.env.PATH ?? "", ...env },
    stdin: stdin === undefined ? "ignore" : new Blob([stdin]),
    stdout: "pipe",
    stderr: "pipe",
    ...(cwd === undefined ? {} : { cwd }),
  });
  const [status, stdout, stderr] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()]);
  return { status, stdout, stderr };
}

/** Runs it on a terminal, which merges both streams. */
export async function runOnTerminal(
  args: string[],
  env: Record<string, string>,
): Promise<{ status: number; screen: string }> {
  const decoder = new TextDecoder();
  let screen = "";
  const child = Bun.spawn([BINARY, ...args], {
    env: { PATH: process.env.PATH ?? "", TERM: "xterm", ...env },
    terminal: {
      cols: 80,
      rows: 24,
      data: (_, bytes) => {
        screen += decoder.decode(bytes, { stream: true });
      },
    },
  });
  return { status: await child.exited, screen };
}

export interface Seen {
  method: string;
  path: string;
  body: unknown;
  bytes: Uint8Array;
  headers: Headers;
}

/** A service that replies with `answer` and records each request. */
export async function standIn(
  answer: (seen: Seen) => Response | Promise<Response>,
  tls?: { cert: string; key: string },
) {
  const seen: Seen[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    development: false,
    ...(tls === undefined ? {} : { tls }),
    fetch: async (request) => {
      const { pathname, search } = new URL(request.url);
      const bytes = await request.bytes();
      const isJson = request.headers.get("content-type") === "application/json";
      const body: unknown = isJson ? JSON.parse(new TextDecoder().decode(bytes)) : null;
      const recorded = { method: request.method, path: pathname + search, body, bytes, headers: request.headers };
      seen.push(recorded);
      return answer(recorded);
    },
  });
  const url = `${tls ? "https" : "http"}://127.0.0.1:${server.port}`;
  return {
    seen,
    url,
    env: { ROOMD_URL: url, ROOMD_API_KEY: KEY },
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}

export function problem(fields: { status: number; code: string; detail: string } & Record<string, unknown>): Response {
  const full = { type: `urn:roomd:problem:${fields.code}`, title: "Refused", retryable: false, request_id: "req_1" };
  return Response.json(
    { ...full, details: {}, errors: [], hint: null, ...fields },
    { status: fields.status, headers: { "Content-Type": "application/problem+json" } },
  );
}

/** A directory that is gone after the test. */
export function scratch(): { path: string; [Symbol.dispose](): void } {
  const path = mkdtempSync(join(tmpdir(), "roomd-cli-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}
