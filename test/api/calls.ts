/** Helpers of the tests in this folder: further keys and organizations, calls below the level of fetch, waiting for a condition. */
import { connect } from "node:net";
import type { Scope } from "../../shared/api/contract.ts";
import { type Answer, answerOf, type Json, type TestDaemon } from "../harness/daemon.ts";

export function bearer(key: string): Record<string, string> {
  return { authorization: `Bearer ${key}` };
}

/** A call with these headers and no others: without a key unless they have one. */
export async function bare(
  daemon: TestDaemon,
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body?: string | Uint8Array<ArrayBuffer>,
): Promise<Answer> {
  const response = await fetch(daemon.url + path, { method, headers, ...(body === undefined ? {} : { body }) });
  return await answerOf(response, method);
}

/** A command of the CLI that must succeed; its JSON. */
export async function run(daemon: TestDaemon, ...args: string[]): Promise<Json> {
  const { status, stdout, stderr } = await daemon.cli([...args, "--json"]);
  if (status !== 0) throw new Error(`roomd ${args.join(" ")}: ${stderr}`);
  return JSON.parse(stdout);
}

export interface KeyOptions {
  scopes?: readonly Scope[];
  rooms?: readonly string[];
  agent?: string;
  expires_in_seconds?: number;
}

/** A key that may do all that these leave to it. */
export async function makeKey(daemon: TestDaemon, options: KeyOptions = {}): Promise<{ key_id: string; key: string }> {
  const { scopes, rooms, agent, expires_in_seconds } = options;
  const bounds = { scopes, room_ids: rooms, agent_id: agent, expires_in_seconds };
  return await daemon.ok("POST", "/v1/orgs/self/keys", { name: "test", ...bounds });
}

export async function makeOrg(daemon: TestDaemon, name: string): Promise<{ org_id: string; api_key: string }> {
  return await run(daemon, "org", "create", "--name", name);
}

/** Polls until the condition holds. Throws with the last observed value. */
export async function until<T>(
  look: () => T | Promise<T>,
  holds: (seen: T) => boolean,
  deadlineMs = 10_000,
): Promise<T> {
  const end = performance.now() + deadlineMs;
  for (;;) {
    const seen = await look();
    if (holds(seen)) return seen;
    if (performance.now() > end) throw new Error(`not so within ${deadlineMs} ms, but ${JSON.stringify(seen)}`);
    await Bun.sleep(10);
  }
}

/** Sends these bytes and returns all that the server sends until it closes; request that with `Connection: close`. */
export function overSocket(daemon: TestDaemon, ...parts: (string | Uint8Array)[]): Promise<string> {
  const { hostname, port } = new URL(daemon.url);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port) });
    let text = "";
    socket.setEncoding("utf8");
    socket.on("data", (chunk) => {
      text += chunk;
    });
    socket.on("error", reject);
    socket.on("close", () => resolve(text));
    for (const part of parts) socket.write(part);
  });
}
